/** The adapters of the wires. Each is evaluated on first use; what several of them need is in the bundle once. */
import type { ModelWire } from "../../../../protocol/gen/types.ts";
import type { Stream } from "./wire.ts";

export async function loadWire(wire: ModelWire): Promise<Stream> {
  switch (wire) {
    case "anthropic-messages":
      return (await import("./anthropic.ts")).messages;
    case "openai-completions":
      return (await import("./openai.ts")).completions;
    case "openai-responses":
      return (await import("./openai.ts")).responses;
    case "azure-openai-responses":
      return (await import("./openai.ts")).azure;
    case "google-generative-ai":
    case "google-vertex":
      return (await import("./google.ts")).gemini;
    case "mistral-conversations":
      return (await import("./mistral.ts")).conversations;
    case "bedrock-converse-stream":
      return (await import("./bedrock.ts")).converse;
  }
}
