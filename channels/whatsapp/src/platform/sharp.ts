/** In place of `sharp`, a native program that makes thumbnails. Baileys asks for it, and does without. */
export {};
