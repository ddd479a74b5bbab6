/** Anthropic's messages API. */
import { streamSimple } from "@mariozechner/pi-ai/api/anthropic-messages";
import type { Stream } from "./wire.ts";

export const messages: Stream = (model, transcript, options) => streamSimple({ ...model, api: "anthropic-messages" }, transcript, options);
