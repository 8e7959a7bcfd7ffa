mod crash;
mod meanwhile;
mod page;
mod world;
