/** What makes calls of models: the demo, the call of a provider, and what turns a conversation into a provider's messages. */
export { callDemo } from "./demo.ts";
export { callProvider } from "./provider-call.ts";
export { TranscriptWriter } from "./transcript.ts";
