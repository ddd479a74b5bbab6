/** Stands in for the gateway until its worker exists. */
import { DurableObject } from "cloudflare:workers";

export class Scratch extends DurableObject {}
export default { fetch: (): Response => new Response("probe") };
