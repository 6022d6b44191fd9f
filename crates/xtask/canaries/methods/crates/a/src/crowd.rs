//! A type in two files: 60 methods are enough for it.

pub struct Crowd;

impl Crowd {
    fn step_01(&self) {}

    fn step_02(&self) {}

    fn step_03(&self) {}

    fn step_04(&self) {}

    fn step_05(&self) {}

    fn step_06(&self) {}

    fn step_07(&self) {}

    fn step_08(&self) {}

    fn step_09(&self) {}

    fn step_10(&self) {}

    fn step_11(&self) {}

    fn step_12(&self) {}

    fn step_13(&self) {}

    fn step_14(&self) {}

    fn step_15(&self) {}

    fn step_16(&self) {}

    fn step_17(&self) {}

    fn step_18(&self) {}

    fn step_19(&self) {}

    fn step_20(&self) {}

    fn step_21(&self) {}

    fn step_22(&self) {}

    fn step_23(&self) {}

    fn step_24(&self) {}

    fn step_25(&self) {}

    fn step_26(&self) {}

    fn step_27(&self) {}

    fn step_28(&self) {}

    fn step_29(&self) {}

    fn step_30(&self) {}

    fn step_31(&self) {}
}
