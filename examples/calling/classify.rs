// The digits of the first ten images, from Rust: classify PROGRAM.so IMAGES.npy
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr;

#[repr(C)]
struct DLDevice {
    device_type: i32, // 1: memory of the CPU
    device_id: i32,
}

#[repr(C)]
struct DLDataType {
    code: u8, // 2: float
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    strides: *mut i64, // null: packed, row-major
    byte_offset: u64,
}

#[repr(C)]
struct TenonModel {
    _private: [u8; 0],
}

#[link(name = "tenon")]
extern "C" {
    fn tenon_model_load(path: *const c_char, prefix: *const c_char, model: *mut *mut TenonModel) -> i32;
    fn tenon_model_free(model: *mut TenonModel);
    fn tenon_model_run(
        model: *mut TenonModel,
        inputs: *const *const DLTensor,
        input_count: i32,
        outputs: *const *mut DLTensor,
        output_count: i32,
    ) -> i32;
    fn tenon_last_error() -> *const c_char;
}

fn must(code: i32) -> Result<(), String> {
    match code {
        0 => Ok(()),
        _ => Err(unsafe { CStr::from_ptr(tenon_last_error()) }.to_string_lossy().into_owned()),
    }
}

struct Model(*mut TenonModel);

impl Model {
    fn load(path: &str) -> Result<Model, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        let mut model = ptr::null_mut();
        must(unsafe { tenon_model_load(path.as_ptr(), ptr::null(), &mut model) })?;
        Ok(Model(model))
    }

    fn run(&self, input: &mut [f32], mut shape: Vec<i64>, output: &mut [f32], mut to: Vec<i64>) -> Result<(), String> {
        let given = tensor_over(input, &mut shape);
        let mut made = tensor_over(output, &mut to);
        let inputs = [&given as *const DLTensor];
        let outputs = [&mut made as *mut DLTensor];
        must(unsafe { tenon_model_run(self.0, inputs.as_ptr(), 1, outputs.as_ptr(), 1) })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { tenon_model_free(self.0) }
    }
}

fn tensor_over(data: &mut [f32], shape: &mut [i64]) -> DLTensor {
    assert_eq!(data.len() as i64, shape.iter().product::<i64>());
    DLTensor {
        data: data.as_mut_ptr() as *mut c_void,
        device: DLDevice { device_type: 1, device_id: 0 },
        ndim: shape.len() as i32,
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape: shape.as_mut_ptr(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    }
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        return Err("usage: classify PROGRAM.so IMAGES.npy".into());
    }
    let file = std::fs::read(&arguments[2]).map_err(|error| error.to_string())?;
    // The header of this .npy file has 128 bytes.
    let mut images: Vec<f32> =
        file[128..].chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect();
    let count = images.len() / 64;
    let mut scores = vec![0f32; count * 10];

    let model = Model::load(&arguments[1])?;
    model.run(&mut images, vec![count as i64, 1, 8, 8], &mut scores, vec![count as i64, 10])?;
    for row in scores.chunks_exact(10).take(10) {
        let best = (1..10).fold(0, |best, digit| if row[digit] > row[best] { digit } else { best });
        print!("{} ", best);
    }
    println!();
    Ok(())
}
