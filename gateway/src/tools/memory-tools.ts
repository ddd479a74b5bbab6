/** The names of the tools of long-term memory (gateway/spec/memory.md). PURE. */
export const REMEMBER = "remember";
export const RECALL = "recall_memory";
