/**
 * Gemini, at Google's own address and at Vertex AI, which differ in address and key only. pi-ai's adapter for Vertex takes no `fetch`
 * and finds its credentials in files, so its adapter for Gemini serves both.
 */
import { streamSimple } from "@mariozechner/pi-ai/api/google-generative-ai";
import { setCallMeans } from "./call-means.ts";
import type { Stream } from "./wire.ts";

export const gemini: Stream = ({ compat: _, ...model }, transcript, { fetch, ...options }) => {
  setCallMeans(options.signal, { fetch });
  return streamSimple({ ...model, api: "google-generative-ai" }, transcript, options);
};
