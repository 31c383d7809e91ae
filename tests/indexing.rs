//! Indexing through the typed wrappers and by name: strides, ids that stand for nothing, ids that are out of range,
//! and the order of additions.

mod common;

use candle_amdgpu::kernels::indexing::{
    gather_i64_u8, ia_i64_f32, ia_u32_f32, is_i16_u32, is_u8_f32, is_u32_f32, s_u32_f32, sa_i64_f16,
    sa_u32_f32,
};
use candle_amdgpu::{DeviceBuffer, Element, Error, INDEXING, LaunchConfig, Layout, Stream, f16};
use common::alone;
use std::ffi::c_void;

const AUTO: LaunchConfig = LaunchConfig::auto();

fn upload<T: Element>(stream: &Stream, data: &[T]) -> DeviceBuffer<T> {
    DeviceBuffer::from_slice(stream, data).unwrap()
}

fn out_of_range(kernel: &str, position: u64, index: i64, size: u64) -> Result<(), Error> {
    Err(Error::IndexOutOfRange { kernel: kernel.to_owned(), position, index, size })
}

#[test]
fn strided_ids_select_the_rows_that_they_name() {
    let _alone = alone();
    for arch in common::ARCHS {
        let stream = common::stream(arch);
        let ids = upload(&stream, &[0_u32, 9, 1, 9, 2, 9]);
        let column = Layout::new(&[3], &[2], 0).unwrap();
        let table: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let table = upload(&stream, &table);
        let mut out = DeviceBuffer::zeros(&stream, 12).unwrap();
        is_u32_f32(&stream, AUTO, 12, &column, &ids, &table, &mut out, 1, 3, 4).unwrap();
        assert_eq!(out.to_vec().unwrap(), table.to_vec().unwrap(), "{arch}");
    }
}

#[test]
fn the_largest_id_reads_zero_and_writes_nothing() {
    let _alone = alone();
    let stream = common::stream("gfx1100");
    let table = upload(&stream, &[1.0_f32, 2.0, 3.0, 4.0]);
    let mut out = upload(&stream, &[9.0_f32; 4]);
    let ids = upload(&stream, &[u8::MAX, 1]);
    is_u8_f32(&stream, AUTO, 4, &Layout::flat(2), &ids, &table, &mut out, 1, 2, 2).unwrap();
    assert_eq!(out.to_vec().unwrap(), [0.0, 0.0, 3.0, 4.0]);
    // Also where the dimension is so large that the id would be in range.
    let wide = upload(&stream, &(0..40_000_u32).collect::<Vec<_>>());
    let mut picked = upload(&stream, &[9_u32; 2]);
    let ids = upload(&stream, &[i16::MAX, 32_766]);
    is_i16_u32(&stream, AUTO, 2, &Layout::flat(2), &ids, &wide, &mut picked, 1, 40_000, 1).unwrap();
    assert_eq!(picked.to_vec().unwrap(), [0, 32_766]);

    let ids = upload(&stream, &[u32::MAX, 0, u32::MAX, 0]);
    s_u32_f32(&stream, AUTO, &ids, &table, &mut out, 1, 2, 2, 2).unwrap();
    assert_eq!(out.to_vec().unwrap(), [0.0, 4.0, 3.0, 4.0]);
    sa_u32_f32(&stream, AUTO, &ids, &table, &mut out, 1, 2, 2, 2).unwrap();
    assert_eq!(out.to_vec().unwrap(), [0.0, 10.0, 3.0, 4.0]);
    let ids = upload(&stream, &[i64::MAX, 1]);
    ia_i64_f32(&stream, AUTO, &ids, 2, &table, &mut out, 1, 2, 2, 2).unwrap();
    assert_eq!(out.to_vec().unwrap(), [0.0, 10.0, 6.0, 8.0]);
}

#[test]
fn an_id_out_of_range_is_reported_at_the_next_synchronisation_and_touches_nothing() {
    let _alone = alone();
    for arch in common::ARCHS {
        let stream = common::stream(arch);
        let table = upload(&stream, &[1.0_f32, 2.0, 3.0, 4.0]);
        let start = [7.0_f32; 6];
        let mut out = upload(&stream, &start);
        let ids = upload(&stream, &[1_u32, 2, 0]);
        is_u32_f32(&stream, AUTO, 6, &Layout::flat(3), &ids, &table, &mut out, 1, 2, 2).unwrap();
        assert_eq!(stream.synchronize(), out_of_range("is_u32_f32", 1, 2, 2), "{arch}");
        assert_eq!(stream.synchronize(), Ok(()), "it is reported once");
        assert_eq!(out.to_vec().unwrap(), [3.0, 4.0, 7.0, 7.0, 1.0, 2.0], "{arch}");

        let bytes = upload(&stream, &[5_u8, 6, 7, 8]);
        let mut picked = upload(&stream, &[1_u8; 8]);
        let ids = upload(&stream, &[0_i64, 1, -1, 3, 2, 0, 0, i64::MAX]);
        gather_i64_u8(&stream, AUTO, 8, &ids, &bytes, &mut picked, 1, 4, 8, 1).unwrap();
        assert_eq!(picked.to_vec().map(drop), out_of_range("gather_i64_u8", 2, -1, 4), "{arch}");
        assert_eq!(picked.to_vec().unwrap(), [5, 6, 1, 8, 7, 5, 5, 0], "{arch}");

        let ids = upload(&stream, &[1_u32, 0, 3, 1]);
        let mut out = upload(&stream, &[0.0_f32; 6]);
        s_u32_f32(&stream, AUTO, &ids, &table, &mut out, 1, 2, 3, 2).unwrap();
        assert_eq!(stream.device().synchronize(), out_of_range("s_u32_f32", 2, 3, 3), "{arch}");
        assert_eq!(out.to_vec().unwrap(), [0.0, 2.0, 1.0, 4.0, 0.0, 0.0], "{arch}");
        sa_u32_f32(&stream, AUTO, &ids, &table, &mut out, 1, 2, 3, 2).unwrap();
        assert_eq!(stream.synchronize(), out_of_range("sa_u32_f32", 2, 3, 3), "{arch}");
        assert_eq!(out.to_vec().unwrap(), [0.0, 4.0, 2.0, 8.0, 0.0, 0.0], "{arch}");

        let ids = upload(&stream, &[-7_i64, 1]);
        ia_i64_f32(&stream, AUTO, &ids, 2, &table, &mut out, 1, 2, 3, 2).unwrap();
        assert_eq!(stream.synchronize(), out_of_range("ia_i64_f32", 0, -7, 3), "{arch}");
        assert_eq!(out.to_vec().unwrap(), [0.0, 4.0, 5.0, 12.0, 0.0, 0.0], "{arch}");
        let text = out_of_range("ia_i64_f32", 0, -7, 3).unwrap_err().to_string();
        assert!(
            text.contains("ia_i64_f32: index -7, at position 0") && text.contains("has 3 elements"),
            "{text}"
        );
    }
}

#[test]
fn an_untyped_launch_reports_it_too() {
    let _alone = alone();
    let device = common::device("gfx90a");
    let stream = device.stream().unwrap();
    let (ids, table) = (upload(&stream, &[0_u32, 5]), upload(&stream, &[1.0_f32, 2.0]));
    let mut out = upload(&stream, &[0.0_f32; 2]);
    let function = device.get_or_load_func("gather_u32_f32", &INDEXING).unwrap();
    let launch =
        function.launch_builder(&stream).value(2_usize).memory(&ids).memory(&table).memory_mut(&mut out);
    let launch = launch.value(1_usize).value(2_usize).value(2_usize).value(1_usize);
    // SAFETY: these are the arguments of `gather_u32_f32`; the memory is as large as the sizes say.
    unsafe { launch.launch(LaunchConfig::for_num_elems(2)).unwrap() };
    assert_eq!(stream.synchronize(), out_of_range("gather_u32_f32", 1, 5, 2));
}

#[test]
fn modules_record_errors_on_their_own() {
    let _alone = alone();
    // Two modules on one device record on their own.
    let device = common::device("gfx1030");
    let other = device.load_code_object("mine", INDEXING.object("gfx1030").unwrap().bytes).unwrap();
    let stream = device.stream().unwrap();
    let (ids, table) = (upload(&stream, &[9_u32]), upload(&stream, &[1.0_f32]));
    let mut out = upload(&stream, &[0.0_f32]);
    let modules = [other, device.load(&INDEXING).unwrap()];
    for module in &modules {
        let function = module.function("gather_u32_f32").unwrap();
        let words = [ids.as_ptr() as usize, table.as_ptr() as usize, out.as_mut_ptr() as usize];
        let words = [1, words[0], words[1], words[2], 1, 1, 1, 1];
        let args = words.each_ref().map(|word| std::ptr::from_ref(word).cast::<c_void>());
        let config = LaunchConfig::explicit([1, 1, 1], [64, 1, 1], 0);
        // SAFETY: these are the arguments of `gather_u32_f32`; the memory lives until its stream is done.
        unsafe { function.launch(&stream, config, &args).unwrap() };
    }
    for _ in 0..2 {
        assert_eq!(stream.synchronize(), out_of_range("gather_u32_f32", 0, 9, 1));
    }
    assert_eq!(stream.synchronize(), Ok(()));
}

/// Values whose sum depends on the order.
fn values(count: usize) -> Vec<f32> {
    (0..count).map(|i| [1e8, 1.0, -1e8, 0.25, 3e7][i % 5] + (i % 7) as f32).collect()
}

#[test]
fn sums_are_those_of_a_loop_whatever_the_geometry() {
    let _alone = alone();
    let configs = [
        AUTO,
        LaunchConfig::for_num_elems(1024),
        LaunchConfig::explicit([1, 1, 1], [1, 1, 1], 0),
        LaunchConfig::explicit([3, 1, 1], [100, 1, 1], 4096),
        LaunchConfig::explicit([5, 1, 1], [8, 16, 2], 65_536 / 2),
    ];
    let (source, target, right) = (75, 6, 12);
    let src = values(source * right);
    let ids: Vec<u32> = (0..source as u32).map(|j| j * j % 6).collect();
    let mut rows = vec![0.5_f32; target * right];
    for (j, &id) in ids.iter().enumerate() {
        for r in 0..right {
            rows[id as usize * right + r] += src[j * right + r];
        }
    }
    let each: Vec<u32> = (0..source * right).map(|i| (i * i % 6) as u32).collect();
    let mut elements = vec![0.5_f32; target * right];
    for (i, &id) in each.iter().enumerate() {
        elements[id as usize * right + i % right] += src[i];
    }
    for arch in common::ARCHS {
        let stream = common::stream(arch);
        let (src, ids, each) = (upload(&stream, &src), upload(&stream, &ids), upload(&stream, &each));
        for config in configs {
            let mut out = upload(&stream, &vec![0.5_f32; target * right]);
            ia_u32_f32(&stream, config, &ids, source, &src, &mut out, 1, source, target, right).unwrap();
            assert_eq!(out.to_vec().unwrap(), rows, "index_add on {arch}, {config:?}");
            let is_plane = matches!(config, LaunchConfig::Explicit { block: [_, 1, 1], .. });
            if is_plane || config == AUTO {
                let mut out = upload(&stream, &vec![0.5_f32; target * right]);
                sa_u32_f32(&stream, config, &each, &src, &mut out, 1, source, target, right).unwrap();
                assert_eq!(out.to_vec().unwrap(), elements, "scatter_add on {arch}, {config:?}");
            }
        }
    }
}

#[test]
fn half_sums_are_rounded_one_by_one() {
    let _alone = alone();
    let stream = common::stream("gfx90a");
    let ids = upload(&stream, &[0_i64; 4096]);
    let ones = upload(&stream, &[f16::ONE; 4096]);
    let mut out = upload(&stream, &[f16::ZERO; 1]);
    sa_i64_f16(&stream, AUTO, &ids, &ones, &mut out, 1, 4096, 1, 1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [f16::from_f32(2048.0)], "as in a loop: 2048 + 1 is 2048");
}

/// Every operation in the emulator's check mode, workgroups and waves in shuffled order: no lane reads what another
/// writes, in workgroup memory either.
#[test]
fn lanes_keep_to_themselves() {
    let _alone = alone();
    for arch in ["gfx1100", "gfx90a"] {
        let device = common::device(arch);
        let stream = device.stream().unwrap();
        let before = amdhip64::launch_options(device.ordinal()).unwrap();
        for seed in 0..3 {
            let mut options = before.clone();
            (options.check, options.shuffle) = (true, Some(seed));
            amdhip64::set_launch_options(device.ordinal(), options).unwrap();
            let (source, target, right) = (40, 9, 200);
            let src = upload(&stream, &values(source * right));
            let each = upload(&stream, &(0..source * right).map(|i| (i * i % 9) as u32).collect::<Vec<_>>());
            let ids = upload(&stream, &(0..source as u32).map(|j| j % 9).collect::<Vec<_>>());
            let mut out = upload(&stream, &vec![0.0_f32; target * right]);
            sa_u32_f32(&stream, AUTO, &each, &src, &mut out, 1, source, target, right).unwrap();
            s_u32_f32(&stream, AUTO, &each, &src, &mut out, 1, source, target, right).unwrap();
            ia_u32_f32(&stream, AUTO, &ids, source, &src, &mut out, 1, source, target, right).unwrap();
            let mut rows = DeviceBuffer::zeros(&stream, source * right).unwrap();
            let flat = Layout::flat(source);
            is_u32_f32(&stream, AUTO, source * right, &flat, &ids, &out, &mut rows, 1, target, right)
                .unwrap();
            assert_eq!(stream.synchronize(), Ok(()), "{arch}, seed {seed}");
        }
        amdhip64::set_launch_options(device.ordinal(), before).unwrap();
    }
}
