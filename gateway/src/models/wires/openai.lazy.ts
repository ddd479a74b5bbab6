/** OpenAI's wires: chat completions, which most other servers speak too, and responses, also at Azure. They share one client. */
import { streamSimple as streamAzure } from "@mariozechner/pi-ai/api/azure-openai-responses";
import { streamSimple as streamCompletions } from "@mariozechner/pi-ai/api/openai-completions";
import { streamSimple as streamResponses } from "@mariozechner/pi-ai/api/openai-responses";
import type { Stream } from "./wire.ts";

export const completions: Stream = (model, transcript, options) =>
  streamCompletions({ ...model, api: "openai-completions" }, transcript, options);
export const responses: Stream = (model, transcript, options) =>
  streamResponses({ ...model, api: "openai-responses" }, transcript, options);
export const azure: Stream = (model, transcript, options) => streamAzure({ ...model, api: "azure-openai-responses" }, transcript, options);
