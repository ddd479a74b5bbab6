/** Mistral's chat completions. */
import { streamSimple } from "@mariozechner/pi-ai/api/mistral-conversations";
import type { Stream } from "./wire.ts";

export const conversations: Stream = (model, transcript, options) =>
  streamSimple({ ...model, api: "mistral-conversations" }, transcript, options);
