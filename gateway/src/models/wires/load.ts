/** Loads the adapter of a provider's API (a wire) with the first call of a model that speaks it: each is a module of its own. */
import type { ModelWire } from "../../../../protocol/gen/types.ts";
import type { Stream } from "./wire.ts";

export async function loadWire(wire: ModelWire): Promise<Stream> {
  switch (wire) {
    case "anthropic-messages":
      return (await import("./anthropic.lazy.ts")).messages;
    case "openai-completions":
      return (await import("./openai.lazy.ts")).completions;
    case "openai-responses":
      return (await import("./openai.lazy.ts")).responses;
    case "azure-openai-responses":
      return (await import("./openai.lazy.ts")).azure;
    case "google-generative-ai":
    case "google-vertex":
      return (await import("./google.lazy.ts")).gemini;
    case "mistral-conversations":
      return (await import("./mistral.lazy.ts")).conversations;
    case "bedrock-converse-stream":
      return (await import("./bedrock.lazy.ts")).converse;
  }
}
