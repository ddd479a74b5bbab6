/** Amazon Bedrock's converse stream. Its requests are signed, or carry an API key (bedrock-client.ts). */
import { streamSimple } from "@mariozechner/pi-ai/api/bedrock-converse-stream";
import { awsKeys } from "../cloud.ts";
import { setCallMeans } from "./call-means.ts";
import { NO_KEY, type Stream } from "./wire.ts";

export const converse: Stream = (model, transcript, { fetch, apiKey, ...options }) => {
  const keys = awsKeys(apiKey);
  setCallMeans(options.signal, { fetch, awsKeys: keys });
  const bearer = keys !== undefined || apiKey === NO_KEY || apiKey === undefined ? {} : { apiKey };
  return streamSimple({ ...model, api: "bedrock-converse-stream" }, transcript, { ...options, ...bearer });
};
