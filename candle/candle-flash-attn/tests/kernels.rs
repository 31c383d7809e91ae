//! The kernels beside attention in `f64`.

mod common;

use candle_flash_attn::launch::{Type, Way};
use common::{Case, Layout};

#[test]
fn a_tile() {
    let case = Case { way: Way::Forward, lengths: vec![[70, 90]], ..Case::default() };
    case.check().unwrap();
    Case { right: Some(0), ..case.clone() }.check().unwrap();
    Case { way: Way::Split(1), right: Some(0), ..case.clone() }.check().unwrap();
    Case { way: Way::Split(2), lengths: vec![[3, 390]], kv_heads: 2, group: 3, ..case.clone() }.check().unwrap();
}
