//! The other file.

impl Crowd {
    pub(crate) fn step_32(&self) {}

    pub(crate) fn step_33(&self) {}

    pub(crate) fn step_34(&self) {}

    pub(crate) fn step_35(&self) {}

    pub(crate) fn step_36(&self) {}

    pub(crate) fn step_37(&self) {}

    pub(crate) fn step_38(&self) {}

    pub(crate) fn step_39(&self) {}

    pub(crate) fn step_40(&self) {}

    pub(crate) fn step_41(&self) {}

    pub(crate) fn step_42(&self) {}

    pub(crate) fn step_43(&self) {}

    pub(crate) fn step_44(&self) {}

    pub(crate) fn step_45(&self) {}

    pub(crate) fn step_46(&self) {}

    pub(crate) fn step_47(&self) {}

    pub(crate) fn step_48(&self) {}

    pub(crate) fn step_49(&self) {}

    pub(crate) fn step_50(&self) {}

    pub(crate) fn step_51(&self) {}

    pub(crate) fn step_52(&self) {}

    pub(crate) fn step_53(&self) {}

    pub(crate) fn step_54(&self) {}

    pub(crate) fn step_55(&self) {}

    pub(crate) fn step_56(&self) {}

    pub(crate) fn step_57(&self) {}

    pub(crate) fn step_58(&self) {}

    pub(crate) fn step_59(&self) {}

    pub(crate) fn step_60(&self) {}

    pub(crate) fn step_61(&self) {}
}

impl Clone for Crowd {
    fn clone(&self) -> Self {
        Self
    }
}
