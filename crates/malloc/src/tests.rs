pub(crate) mod virtual_process;
