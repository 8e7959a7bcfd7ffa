//! A heap of a few pages in made-up memory.
