//! Convolutions, pools and upsampling.

use crate::{FLOATS, Make, Op};

/// One and two dimensions, with padding, stride, dilation and groups.
pub fn ops() -> Vec<Op> {
    let mut all = Vec::new();
    for (padding, stride, dilation, groups) in [(0, 1, 1, 1), (1, 2, 1, 1), (2, 1, 2, 2)] {
        let name = move |op: &str| {
            format!("{op}, padding {padding}, stride {stride}, dilation {dilation}, groups {groups}")
        };
        all.push(Op::new(name("conv1d"), &FLOATS, move |make: &Make| {
            let (x, kernel) = (make.any((2, 4, 11), 1)?, make.range((6, 4 / groups, 3), -1.0, 1.0, 2)?);
            x.conv1d(&kernel, padding, stride, dilation, groups)
        }));
        all.push(Op::new(name("conv2d"), &FLOATS, move |make: &Make| {
            let (x, kernel) = (make.any((2, 4, 9, 8), 1)?, make.range((6, 4 / groups, 3, 3), -1.0, 1.0, 2)?);
            x.conv2d(&kernel, padding, stride, dilation, groups)
        }));
    }
    for (padding, output_padding, stride, dilation) in [(0, 0, 1, 1), (1, 1, 2, 1), (0, 0, 1, 2)] {
        all.push(Op::new(
            format!("conv_transpose1d, stride {stride}, dilation {dilation}"),
            &FLOATS,
            move |make: &Make| {
                // The CPU backend takes one way for this, which is right for one batch only.
                let batches = if (padding, dilation) == (0, 1) { 1 } else { 2 };
                let (x, kernel) = (make.any((batches, 4, 7), 1)?, make.range((4, 3, 3), -1.0, 1.0, 2)?);
                x.conv_transpose1d(&kernel, padding, output_padding, stride, dilation, 1)
            },
        ));
        all.push(Op::new(
            format!("conv_transpose2d, stride {stride}, dilation {dilation}"),
            &FLOATS,
            move |make: &Make| {
                let (x, kernel) = (make.any((1, 4, 5, 6), 1)?, make.range((4, 3, 3, 3), -1.0, 1.0, 2)?);
                x.conv_transpose2d(&kernel, padding, output_padding, stride, dilation)
            },
        ));
    }
    all.push(Op::new("conv2d, input not contiguous", &FLOATS, |make: &Make| {
        make.any((2, 8, 9, 4), 1)?.transpose(1, 3)?.conv2d(
            &make.range((3, 4, 2, 2), -1.0, 1.0, 2)?,
            0,
            1,
            1,
            1,
        )
    }));
    all.push(Op::new("avg_pool2d", &FLOATS, |make: &Make| make.any((2, 3, 8, 9), 1)?.avg_pool2d((2, 3))));
    all.push(Op::new("avg_pool2d, strided", &FLOATS, |make: &Make| {
        make.any((2, 3, 8, 9), 1)?.transpose(2, 3)?.avg_pool2d_with_stride((3, 2), (2, 1))
    }));
    all.push(Op::new("max_pool2d", &FLOATS, |make: &Make| {
        make.any((2, 3, 8, 9), 1)?.max_pool2d_with_stride((3, 2), (2, 1))
    }));
    all.push(Op::new("upsample_nearest2d", &FLOATS, |make: &Make| {
        make.any((2, 3, 4, 5), 1)?.upsample_nearest2d(9, 7)
    }));
    for align in [false, true] {
        all.push(Op::new(format!("upsample_bilinear2d, corners {align}"), &FLOATS, move |make: &Make| {
            make.any((1, 2, 4, 5), 1)?.upsample_bilinear2d(9, 7, align)
        }));
    }
    all.into_iter().map(|op| op.units(64.0)).collect()
}
