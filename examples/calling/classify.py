"""The digits of the first ten images, from Python: classify.py PROGRAM.so IMAGES.npy"""

import array
import sys

from tenon_ctypes import Model, numpy

model = Model(sys.argv[1])
if numpy is not None:
    (scores,) = model.run(numpy.load(sys.argv[2]))
    rows = scores[:10].tolist()
else:
    images = array.array("f", open(sys.argv[2], "rb").read()[128:])  # behind the header of this .npy file
    ((scores, shape),) = model.run((images, (450, 1, 8, 8)))
    rows = [scores[10 * i:10 * i + 10].tolist() for i in range(10)]
print(*[row.index(max(row)) for row in rows])
