extern crate std;

use super::*;
use std::eprintln;

#[test]
fn code_on_vectors_is_told_from_other_code() {
    let vectors: [&[u8]; 6] = [
        &[0x66, 0x0f, 0x6f, 0x07],             // movdqa (%rdi),%xmm0
        &[0xf3, 0x0f, 0x6f, 0x04, 0x07],       // movdqu (%rdi,%rax),%xmm0
        &[0x0f, 0x28, 0x07],                   // movaps (%rdi),%xmm0
        &[0x66, 0x0f, 0x74, 0x07],             // pcmpeqb (%rdi),%xmm0
        &[0xc5, 0xfd, 0x6f, 0x07],             // vmovdqa (%rdi),%ymm0
        &[0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x07], // vmovdqa64 (%rdi),%zmm0
    ];
    for code in vectors {
        assert!(is_of_vectors(code), "{code:x?}");
    }
    let others: [&[u8]; 6] = [
        &[0x0f, 0xb6, 0x04, 0x37],       // movzbl (%rdi,%rsi),%eax
        &[0x0f, 0xbe, 0x07],             // movsbl (%rdi),%eax
        &[0x48, 0x8b, 0x47, 0xf8],       // mov -8(%rdi),%rax
        &[0x8b, 0x47, 0x14],             // mov 0x14(%rdi),%eax
        &[0xc6, 0x04, 0x37, 0x41],       // movb $0x41,(%rdi,%rsi)
        &[0xf3, 0x0f, 0x1e, 0xfa, 0x8a], // endbr64, mov
    ];
    for code in others {
        assert!(!is_of_vectors(code), "{code:x?}");
    }
}

/// Emulators fail it, if they let processes watch memory at all.
#[test]
fn the_trial_touches_bytes_beside_the_watched_one_alone() {
    assert!(install());
    let watch = Watch::new();
    if !watch.set(TRIAL.watched(), 1) {
        eprintln!("skipped: this process may not watch memory");
        return;
    }
    assert!(watch.is_exact());
    // Such a report makes a watch inexact.
    // SAFETY: a byte of the trial.
    unsafe { (TRIAL.watched() as *const u8).read_volatile() };
    assert!(TOUCHED.load(Relaxed));
    watch.forget();
}
