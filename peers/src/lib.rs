//! Nothing of its own: each feature has Cargo compile one allocator, and `scripts/peers.sh` links it.
