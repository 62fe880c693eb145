conv_relu = is_op("relax.nn.relu")(is_op("relax.nn.conv2d")(wildcard(), is_const()))
