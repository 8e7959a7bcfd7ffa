mod input;
mod kill;
mod models;
mod sync;
