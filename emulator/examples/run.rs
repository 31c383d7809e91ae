//! Runs a kernel of a code object on a buffer and prints what it did.
//!
//!     cargo run --example run -- FILE.elf KERNEL
//!
//! The kernel gets a buffer of 1,024 zeroed floats for every pointer, and 1,024 for every other argument.

use amdgpu_emulator::{ArgKind, CodeObject, Launch, LaunchOptions, Machine, MachineOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("usage: run FILE.elf KERNEL".into());
    };
    let object = CodeObject::parse(&std::fs::read(file)?)?;
    let machine = Machine::new(object.gfx(), MachineOptions::default())?;
    let kernel = machine.load(&object)?.kernel(&name).ok_or("no such kernel")?;

    let mut kernarg = vec![0; kernel.info().explicit_size() as usize];
    let mut buffers = Vec::new();
    for arg in kernel.info().args.iter().filter(|arg| !arg.is_hidden()) {
        let value = match arg.kind {
            ArgKind::GlobalBuffer => {
                let buffer = machine.alloc_labelled(4096, arg.name.as_deref().unwrap_or("buffer"))?;
                machine.fill(buffer, 0, 4096)?;
                buffers.push(buffer);
                buffer
            }
            _ => 1024,
        };
        let size = (arg.size as usize).min(8);
        kernarg[arg.offset as usize..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    let mut options = LaunchOptions::default();
    options.check = true;
    let launch = Launch { grid: [4, 1, 1], block: [256, 1, 1], dynamic_lds: 0, kernarg: &kernarg, options };
    let report = machine.launch(&kernel, &launch)?;
    println!("{report:?}");
    for buffer in buffers {
        let mut bytes = [0; 16];
        machine.read(buffer, &mut bytes)?;
        println!("{:?} starts with {bytes:02x?}", machine.allocation(buffer).map(|a| a.to_string()));
    }
    Ok(())
}
