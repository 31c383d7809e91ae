//! The emulator as an executor.

use amdgpu_emulator::{
    CodeObject, Gfx, Launch as Dispatch, LaunchOptions, LoadedModule, Machine, MachineOptions,
};

use crate::compare::{Executor, Launch};
use crate::operation::WORKGROUP;

/// An emulated device of a target, with the kernels for it.
pub struct Emulated {
    machine: Machine,
    module: LoadedModule,
}

impl Emulated {
    /// A device, with the code object in `bytes`.
    ///
    /// # Errors
    /// If the machine cannot have one, or if the bytes are not for it.
    pub fn new(gfx: Gfx, bytes: &[u8]) -> Result<Emulated, String> {
        let mut options = MachineOptions::default();
        options.memory_bytes = 1 << 30;
        let machine = Machine::new(gfx, options).map_err(|error| error.to_string())?;
        let object = CodeObject::parse(bytes).map_err(|error| error.to_string())?;
        let module = machine.load(&object).map_err(|error| error.to_string())?;
        Ok(Emulated { machine, module })
    }
}

impl Executor for Emulated {
    fn run(&mut self, kernel: &str, launch: Launch<'_>) -> Result<Vec<u32>, String> {
        let kernel = self.module.kernel(kernel).ok_or("the code object has no such kernel")?;
        let text = |error: amdgpu_emulator::MemoryError| error.to_string();
        let input: Vec<u8> = launch.input.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut output = vec![0; launch.lanes * launch.output_words * 4];
        let from = self.machine.alloc(input.len().max(4) as u64).map_err(text)?;
        let to = self.machine.alloc(output.len().max(4) as u64).map_err(text)?;
        self.machine.write(from, &input).map_err(text)?;
        let mut kernarg = from.to_le_bytes().to_vec();
        kernarg.extend(to.to_le_bytes());
        kernarg.extend(launch.mode.to_le_bytes());
        let grid = u32::try_from(launch.lanes / WORKGROUP).map_err(|error| error.to_string())?;
        let dispatch = Dispatch {
            grid: [grid, 1, 1],
            block: [WORKGROUP as u32, 1, 1],
            dynamic_lds: 0,
            kernarg: &kernarg,
            options: LaunchOptions::default(),
        };
        let result = self.machine.launch(&kernel, &dispatch).map_err(|fault| fault.to_string());
        let read = self.machine.read(to, &mut output).map_err(text);
        self.machine.free(from).map_err(text)?;
        self.machine.free(to).map_err(text)?;
        result?;
        read?;
        Ok(output.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}
