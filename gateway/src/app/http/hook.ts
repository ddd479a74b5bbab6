/**
 * `POST /hooks/{name}`: a delivery of another service (rules HK2, HK8). Refuses what can be refused without the gateway: other methods,
 * browsers, requests without any proof, and large, slow and too many bodies. The Gateway object checks the signature.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { HOOK_PROOF_HEADERS, type HookPort } from "../../ports/http.ts";
import { isBrowser, readAtMost } from "./body.ts";
import { failureResponse, NOT_FROM_A_PAGE, methodRefused, problemResponse, SAFE_HEADERS } from "./problem.ts";
import { Slots } from "./slots.ts";

const PATH = /^\/hooks\/([a-z0-9][a-z0-9_-]{0,47})$/;
/** Headers that the gateway gets: the proofs, ids, and those that a template may name. */
const PASSED =
  /^(authorization|content-type|user-agent|idempotency-key|stripe-signature|webhook-[a-z0-9-]+|x-(?!forwarded|real-ip)[a-z0-9-]+)$/;
/** Headers with the id of a delivery. No proof: what is signed is checked where the delivery's form is known. */
const ID_HEADERS: ReadonlySet<string> = new Set(["idempotency-key", "webhook-id", "x-github-delivery"]);
/** Headers that identify a delivery, prove its sender and name its form. */
const NEEDED: ReadonlySet<string> = new Set([...HOOK_PROOF_HEADERS, ...ID_HEADERS, "webhook-timestamp", "x-github-event"]);
const MAX_HEADERS = 64;
const MAX_HEADER_CHARS = 4096;
/** For all hooks together, because a sender can invent names. */
const ALL_AT_ONCE = 4 * LIMITS.webhooksAtOnce;

/** For a person who has opened the address in a browser. */
const NOT_A_PAGE = "This is the address for another service, which sends a signed POST request. To try it: `gsv hook test NAME`.";
const SHORTER = "Let the service send less, such as the address of the data, which the agent can read.";
const tooMany = (): Response => problemResponse("limit.rate", "Too many requests to hooks at once.", { hint: "Try again." });

export class HookDoor {
  readonly #slots = new Slots(LIMITS.webhooksAtOnce, ALL_AT_ONCE);
  /** Bytes of bodies whose signature is not checked yet. */
  #bytes = 0;

  async respond(request: Request, path: string, gateway: () => HookPort): Promise<Response> {
    const name = PATH.exec(path)?.[1];
    if (name === undefined) return problemResponse("protocol.unknown_method", "There is no such address. /openapi.json lists them.");
    if (request.method !== "POST") return methodRefused("POST", "Hooks take POST requests.", NOT_A_PAGE);
    if (isBrowser(request.headers))
      return problemResponse("auth.origin", "Hooks answer services, not pages in a browser.", { hint: NOT_FROM_A_PAGE });
    if (!HOOK_PROOF_HEADERS.some((header) => request.headers.has(header))) return problemResponse("hook.refused");
    const release = this.#slots.take(name);
    if (release === undefined) return tooMany();
    let held = 0;
    const hasRoom = (size: number): boolean => {
      if (this.#bytes + size - held > LIMITS.hookBytesAtOnce) return false;
      this.#bytes += size - held;
      held = size;
      return true;
    };
    let isOpen = true;
    try {
      const body = await readAtMost(request, LIMITS.webhookBytes, LIMITS.webhookBodyMs, (size) => isOpen && hasRoom(size));
      if (body === "full") return tooMany();
      if (body === "late") return problemResponse("protocol.late");
      if (body === "large")
        return problemResponse("protocol.too_large", `A request to a hook has at most ${LIMITS.webhookBytes} bytes.`, { hint: SHORTER });
      const taken = await gateway().hook({ name, headers: headersOf(request.headers), body });
      if (!taken.ok) return failureResponse(taken.error);
      const status = taken.value === "accepted" ? 202 : 200;
      return new Response(JSON.stringify({ status: taken.value }), {
        status,
        headers: { "Content-Type": "application/json", ...SAFE_HEADERS },
      });
    } finally {
      isOpen = false;
      this.#bytes -= held;
      release();
    }
  }
}
/** Longer headers are dropped: no proof is that long. An id may be (rule HK4). Of too many, proofs and ids come first. */
function headersOf(headers: Headers): [string, string][] {
  const passed = [...headers].filter(([name, value]) => PASSED.test(name) && (value.length <= MAX_HEADER_CHARS || ID_HEADERS.has(name)));
  const isNeeded = ([name]: [string, string]): boolean => NEEDED.has(name);
  return [...passed.filter(isNeeded), ...passed.filter((header) => !isNeeded(header))].slice(0, MAX_HEADERS);
}
