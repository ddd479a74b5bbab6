/** For tests: the model client alone in a Worker, with the modules of the wires beside it. Answers the outcome and the text as heard. */
import { createModelClient } from "../../src/models/model-client.ts";
import type { ModelRequest } from "../../src/ports/model.ts";

export default {
  async fetch(request: Request): Promise<Response> {
    const given = (await request.json()) as Omit<ModelRequest, "signal" | "now" | "onText">;
    const heard: string[] = [];
    const outcome = await createModelClient().call({
      ...given,
      signal: new AbortController().signal,
      now: () => Date.now(),
      onText: (text) => heard.push(text),
    });
    return Response.json({ outcome, heard });
  },
};
