/**
 * Controls the fake WhatsApp over HTTP: one path per action, parameters as JSON, validated because people type them. Serves only this
 * machine.
 */
import type { Linking } from "./linking.ts";
import type { Person, Shown } from "./party.ts";
import type { Note, Say, SayMedia } from "./types.ts";

/** The actions of the server that this controls. */
export interface Controlled {
  readonly url: string;
  readonly rootHex: string;
  readonly tls: { readonly cert: string };
  readonly account: { readonly pn: string };
  readonly linking: Pick<Linking, "scan" | "type">;
  readonly log: readonly Note[];
  refuseLogin: string | undefined;
  dropAfterNextMessage: boolean | string;
  addPeer(person: Person): unknown;
  addGroup(id: string, subject: string, members: readonly string[]): void;
  say(pn: string, message: string, options?: Say): Promise<string>;
  sayToSelf(text: string): Promise<string>;
  sayFile(pn: string, bytes: Uint8Array, media: SayMedia): Promise<string>;
  shown(pn: string): readonly Shown[];
  disconnect(reason: number): void;
  drop(): void;
}

type Wish = Readonly<Record<string, unknown>>;
class BadWish extends Error {}

function text(wish: Wish, name: string): string {
  const value = wish[name];
  if (typeof value !== "string" || value === "") throw new BadWish(`"${name}" is missing: a text is needed`);
  return value;
}
const textOr = (wish: Wish, name: string, otherwise: string): string => (wish[name] === undefined ? otherwise : text(wish, name));
const where = (wish: Wish): { group?: string; byLid?: boolean; id?: string } => ({
  ...(wish["group"] === undefined ? {} : { group: text(wish, "group") }),
  ...(wish["byLid"] === true ? { byLid: true } : {}),
  ...(wish["id"] === undefined ? {} : { id: text(wish, "id") }),
});
const KINDS = ["image", "video", "audio", "document"] as const;

const WISHES: Readonly<Record<string, (fake: Controlled, wish: Wish) => unknown>> = {
  /** What a client needs: the URL and the root key. */
  "/about": (fake) => ({ url: fake.url, noiseRoot: fake.rootHex, certificate: fake.tls.cert, phone: fake.account.pn }),
  "/people": (fake, wish) => {
    const pn = text(wish, "pn");
    fake.addPeer({ pn, lid: textOr(wish, "lid", `9${pn}`), name: textOr(wish, "name", pn) });
  },
  "/groups": (fake, wish) => {
    const { members } = wish;
    if (!Array.isArray(members) || !members.every((member) => typeof member === "string"))
      throw new BadWish('"members" is a list of numbers');
    fake.addGroup(text(wish, "id"), textOr(wish, "subject", "A group"), [...members, fake.account.pn]);
  },
  "/scan": (fake, wish) => fake.linking.scan(text(wish, "qr")),
  "/type": (fake, wish) => fake.linking.type(text(wish, "code")),
  "/say": async (fake, wish) => ({ id: await fake.say(text(wish, "from"), text(wish, "text"), where(wish)) }),
  "/say-to-self": async (fake, wish) => ({ id: await fake.sayToSelf(text(wish, "text")) }),
  "/file": async (fake, wish) => {
    const kind = KINDS.find((known) => known === wish["kind"]);
    if (!kind) throw new BadWish(`"kind" is one of ${KINDS.join(", ")}`);
    const more = {
      ...(wish["voice"] === true ? { ptt: true } : {}),
      ...(wish["name"] === undefined ? {} : { fileName: text(wish, "name") }),
    };
    const bytes = Buffer.from(text(wish, "base64"), "base64");
    return { id: await fake.sayFile(text(wish, "from"), bytes, { kind, mimetype: text(wish, "mimetype"), more, ...where(wish) }) };
  },
  /** Messages on this person's phone. */
  "/shown": (fake, wish) =>
    fake.shown(text(wish, "pn")).map(({ id, chat, copies, message }) => ({ id, chat, copies, message: message.toJSON() })),
  "/log": (fake) => fake.log,
  "/disconnect": (fake, wish) => {
    if (typeof wish["reason"] !== "number") throw new BadWish('"reason" is a number, like 440');
    fake.disconnect(wish["reason"]);
  },
  "/refuse-login": (fake, wish) => {
    fake.refuseLogin = text(wish, "reason");
  },
  "/drop": (fake) => fake.drop(),
  "/drop-after-next-message": (fake) => {
    fake.dropAfterNextMessage = true;
  },
};

export async function control(fake: Controlled, path: string, body: unknown): Promise<{ readonly status: number; readonly body: unknown }> {
  const wish = Object.hasOwn(WISHES, path) ? WISHES[path] : undefined;
  if (!wish) return { status: 404, body: { error: `there is no ${path}; there are ${Object.keys(WISHES).join(", ")}` } };
  try {
    return { status: 200, body: (await wish(fake, typeof body === "object" && body !== null ? { ...body } : {})) ?? { ok: true } };
  } catch (error) {
    return { status: 400, body: { error: error instanceof Error ? error.message : String(error) } };
  }
}
