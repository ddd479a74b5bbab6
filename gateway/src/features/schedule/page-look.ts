/**
 * Reads a page for a condition of HEARTBEAT.md (rule HB9) and keeps a print of it. The content is stored nowhere, and no sentence from
 * here has a word of it.
 */
import type { WebPort } from "../../ports/web.ts";
import type { Answer } from "../../schedule/failing.ts";

export interface PagePorts extends WebPort {
  readonly sha256: (text: string) => Promise<string>;
}
export const PAGE_MS = 10_000;
const MAX_BYTES = 1_048_576;

const failed = (why: string): Answer => ({ kind: "failed", why });
const print = async (kind: string, text: string, sha256: PagePorts["sha256"]): Promise<Answer> => ({
  kind: "print",
  print: `${kind}:${await sha256(text)}`,
});

/** `whole`: the time of all conditions of a file. */
export async function lookAtPage({ web, sha256 }: PagePorts, url: string, whole: AbortSignal): Promise<Answer> {
  const own = web.limit(PAGE_MS);
  const signal = AbortSignal.any([own, whole]);
  try {
    const asked = web.fetch(url, { method: "GET", redirect: "manual", headers: { accept: "*/*", "user-agent": "GSV" }, signal });
    if (asked === undefined)
      return failed("This gateway was started by an earlier version of gsv. Start it again with this one: `gsv down`, then `gsv up`.");
    return await answerOf(await asked, sha256);
  } catch {
    if (signal.aborted) return failed(`It did not answer within ${PAGE_MS / 1_000} s.`);
    return failed("It could not be reached, or its name leads to an address of this machine or of a local network.");
  }
}
async function answerOf(response: Response, sha256: PagePorts["sha256"]): Promise<Answer> {
  const { status, headers, body } = response;
  const refusal = refusalOf(status);
  const [etag, modified] = [headers.get("etag"), headers.get("last-modified")];
  if (refusal !== undefined || etag !== null || modified !== null) {
    await body?.cancel();
    if (refusal !== undefined) return failed(refusal);
    return etag === null ? print("modified", modified ?? "", sha256) : print("etag", etag, sha256);
  }
  const text = await readBounded(body);
  if (text === undefined) return failed("It has more than 1 MiB and says neither an ETag nor when it changed.");
  return print("body", text, sha256);
}
function refusalOf(status: number): string | undefined {
  if (status >= 300 && status < 400)
    return `It answered with a redirect (${status}), which is not followed. Name the address that it leads to.`;
  return status >= 200 && status < 300 ? undefined : `It answered with the status ${status}.`;
}
/** A character for each byte. Undefined: there is more than is read. */
async function readBounded(body: ReadableStream<Uint8Array> | null): Promise<string | undefined> {
  if (body === null) return "";
  const reader = body.getReader();
  // It has a character of its own for each of the 256 bytes.
  const decoder = new TextDecoder("windows-1252");
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    if (text.length + value.byteLength > MAX_BYTES) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value);
  }
}
