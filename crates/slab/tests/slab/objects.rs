mod model;
mod refused;
mod small;
mod suppliers;
mod world;
