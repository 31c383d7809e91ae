//! How long the kernels take to load: of each family, the first kernel, and all of them on all cores.
//!
//! On an NVIDIA GPU that is the driver's compiler, whose cache `CUDA_CACHE_DISABLE=1` turns off.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use candle_amdgpu::{Device, Result, kernels};

fn main() -> Result<()> {
    let device = Device::new(0)?;
    println!("{device}, {}", candle_amdgpu::backend());
    println!("{:12} {:>7} {:>9} {:>9} {:>9}", "family", "kernels", "bytes", "first ms", "all ms");
    let (mut kernels_of_all, mut bytes_of_all) = (0, 0);
    let begin = Instant::now();
    for module in kernels::MODULES {
        let bytes = module.object_for(device.arch())?.bytes.len();
        let names: Vec<&str> = module.kernels().iter().map(|kernel| kernel.name).collect();
        let start = Instant::now();
        device.get_or_load_func(names[0], module)?;
        let first = start.elapsed();
        let next = AtomicUsize::new(1);
        let work = || -> Result<()> {
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                device.get_or_load_func(name, module)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        println!(
            "{:12} {:>7} {:>9} {:>9.1} {:>9.1}",
            module.name(),
            names.len(),
            bytes,
            ms(first),
            ms(start.elapsed())
        );
        kernels_of_all += names.len();
        bytes_of_all += bytes;
    }
    println!(
        "{:12} {kernels_of_all:>7} {bytes_of_all:>9} {:>9} {:>9.1}",
        "all",
        "",
        begin.elapsed().as_secs_f64() * 1e3
    );
    Ok(())
}
