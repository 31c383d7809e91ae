//! Calls by a device's number instead of its context.

pub use super::DriverError;

/// Facts about devices.
pub mod device {
    use super::DriverError;
    use crate::driver::sys::{CUdevice, CUdevice_attribute};
    use candle_amdgpu::Device;

    /// What a device is and can do.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn get_attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<i32, DriverError> {
        use CUdevice_attribute::*;
        let ordinal = usize::try_from(device).unwrap_or(usize::MAX);
        let device = Device::new(ordinal).map_err(DriverError::without_device)?;
        let properties = device.properties();
        let (major, minor) = version(&device.properties().target);
        let value = match attribute {
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => major,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => minor,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => properties.compute_units,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => properties.max_lds_bytes,
            CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => properties.max_workgroup_size,
            CU_DEVICE_ATTRIBUTE_WARP_SIZE => properties.wave_size,
        };
        Ok(i32::try_from(value).unwrap_or(i32::MAX))
    }

    /// The generation of a target and its minor version: `gfx1103` is 11.0, step 3.
    fn version(arch: &str) -> (u32, u32) {
        let name = arch.split(':').next().unwrap_or_default();
        // NVIDIA's are two numbers in one: `nvptx:sm_90`.
        let digits = match arch.split_once(":sm_") {
            Some((_, digits)) => {
                let split = digits.len().saturating_sub(1);
                let number =
                    |digits: Option<&str>| digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
                return (number(digits.get(..split)), number(digits.get(split..)));
            }
            None => name.strip_prefix("gfx").unwrap_or_default(),
        };
        let split = digits.len().saturating_sub(2);
        let minor = digits.get(split..split + 1).and_then(|digit| u32::from_str_radix(digit, 16).ok());
        let major = digits.get(..split).and_then(|digits| digits.parse().ok());
        (major.unwrap_or(0), minor.unwrap_or(0))
    }

    #[cfg(test)]
    mod tests {
        use super::version;

        #[test]
        fn a_target_is_generation_minor_and_step() {
            assert_eq!(version("gfx1100"), (11, 0));
            assert_eq!(version("gfx1030"), (10, 3));
            assert_eq!(version("gfx90a"), (9, 0));
            assert_eq!(version("gfx942"), (9, 4));
            assert_eq!(version("gfx90a:sramecc+:xnack-"), (9, 0));
            assert_eq!(version("nvptx:sm_90"), (9, 0));
            assert_eq!(version("nvptx:sm_121"), (12, 1));
            assert_eq!(version("gf"), (0, 0));
        }
    }
}
