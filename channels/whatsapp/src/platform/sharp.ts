/** Replaces `sharp`, a native library for thumbnails. Baileys works without it. */
export {};
