//! What operators write.

/// Reads a `planwright.toml`, with its policy.
pub(crate) fn read_configuration(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        let refused = planwright::fuzzing::read_configuration(text).err();
        assert!(
            refused.is_none_or(|message| !message.is_empty()),
            "a refusal says why"
        );
    }
}
