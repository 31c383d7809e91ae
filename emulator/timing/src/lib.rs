//! How long a kernel takes on an AMD card, predicted from what the emulator executes.
//!
//! The emulator executes a launch, exactly, and tells a [`Recording`] of each instruction and address. [`predict`] then makes
//! three steps: the caches say which level answers each access ([`cache`]), each instruction gets its cost ([`cost`]), and
//! two of the card's units execute their workgroups in time, wave by wave ([`engine`]), with their share of what all units
//! have in common. What is known of a card is in [`card`], constant by constant with its source.

pub mod cache;
pub mod card;
pub mod cost;
pub mod engine;
pub mod occupancy;
pub mod record;

mod predict;

pub use card::{CARDS, Card};
pub use engine::{Span, Stall};
pub use predict::{Class, LineStalls, Options, Prediction, WhatIf, predict};
pub use record::{Recorded, Recording};
