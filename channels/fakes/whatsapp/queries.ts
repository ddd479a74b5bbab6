/** The device's queries: keys, devices of a person, groups, where files go, settings, and the end of its link. */
import { type BinaryNode, getBinaryNodeChild, getBinaryNodeChildren } from "@whiskeysockets/baileys";
import type { Linking } from "./linking.ts";
import type { Bot, Party } from "./party.ts";
import { bytesOf, children, seconds, SERVER } from "./stanza.ts";
import type { Connection } from "./types.ts";

/** What queries need of the server. */
export interface QueriesHost {
  readonly account: { readonly device: number };
  readonly phone: Party;
  readonly groups: ReadonlyMap<string, { readonly subject: string; readonly members: readonly string[] }>;
  readonly linking: Linking;
  readonly fileHost: string;
  bot: Bot | undefined;
  party(jid: string): Party | undefined;
  note(kind: string, fields?: Readonly<Record<string, unknown>>): void;
  send(connection: Connection, node: BinaryNode): void;
  /** Sends what waited for the device. */
  flush(connection: Connection): void;
}

export class Queries {
  readonly #host: QueriesHost;

  constructor(host: QueriesHost) {
    this.#host = host;
  }

  /** Answers a query of the device, as WhatsApp does. */
  async answer(connection: Connection, node: BinaryNode): Promise<void> {
    const { attrs } = node;
    const first = children(node)[0];
    const answer = (content?: BinaryNode[]): void =>
      this.#host.send(connection, {
        tag: "iq",
        attrs: { from: attrs["to"] ?? SERVER, id: attrs["id"] ?? "", type: "result", t: String(seconds()) },
        ...(content ? { content } : {}),
      });
    if (attrs["type"] === "result") return this.#host.linking.onResult(connection, node);
    switch (attrs["xmlns"]) {
      case "encrypt":
        return this.#onKeys(node, answer);
      case "usync": {
        const list = children(getBinaryNodeChild(first, "list") ?? { tag: "list", attrs: {} });
        return answer([
          {
            tag: "usync",
            attrs: { sid: first?.attrs["sid"] ?? "", index: "0", last: "true" },
            content: [{ tag: "list", attrs: {}, content: list.map((user) => this.#devices(user.attrs["jid"] ?? "")) }],
          },
        ]);
      }
      case "w:m":
        return answer([
          {
            tag: "media_conn",
            attrs: { auth: "AUTH", ttl: "3600", max_buckets: "12" },
            content: [{ tag: "host", attrs: { hostname: this.#host.fileHost, maxContentLengthBytes: "104857600" } }],
          },
        ]);
      case "w:g2":
        return answer(attrs["type"] === "get" ? [this.#groupNode(attrs["to"] ?? "")] : undefined);
      case "privacy":
        return answer([{ tag: "privacy", attrs: {}, content: [{ tag: "category", attrs: { name: "readreceipts", value: "all" } }] }]);
      case "abt":
        return answer([{ tag: "props", attrs: { hash: "h" }, content: [] }]);
      case "blocklist":
        return answer([{ tag: "list", attrs: {}, content: [] }]);
      case "passive":
        answer();
        return this.#host.flush(connection);
      case "md":
        if (first?.tag === "remove-companion-device") {
          this.#host.bot = undefined;
          this.#host.note("logout");
        } else if (first?.tag === "link_code_companion_reg") {
          answer();
          return this.#host.linking.onCode(connection, first);
        }
        return answer();
      case "w:p":
        this.#host.note("ping");
        return answer();
      default:
        return answer();
    }
  }
  #onKeys(node: BinaryNode, answer: (content?: BinaryNode[]) => void): void {
    const first = children(node)[0];
    if (node.attrs["type"] === "set") {
      const keys = getBinaryNodeChildren(getBinaryNodeChild(node, "list"), "key");
      for (const key of keys)
        this.#host.bot?.preKeys.push({
          keyId: bytesOf(getBinaryNodeChild(key, "id")).readUIntBE(0, 3),
          publicKey: bytesOf(getBinaryNodeChild(key, "value")),
        });
      this.#host.note("prekeys", { count: keys.length });
      return answer();
    }
    if (first?.tag === "count") return answer([{ tag: "count", attrs: { value: String(this.#host.bot?.preKeys.length ?? 0) } }]);
    if (first?.tag === "digest") return answer([{ tag: "digest", attrs: {} }]);
    const users = children(first ?? node).map((user): BinaryNode => {
      const jid = user.attrs["jid"] ?? "";
      return this.#host.party(jid)?.bundle(jid) ?? { tag: "user", attrs: { jid }, content: [{ tag: "error", attrs: { code: "404" } }] };
    });
    return answer([{ tag: "list", attrs: {}, content: users }]);
  }
  #devices(jid: string): BinaryNode {
    const party = this.#host.party(jid);
    const own: BinaryNode[] =
      party === this.#host.phone ? [{ tag: "device", attrs: { id: String(this.#host.account.device), "key-index": "1" } }] : [];
    const devices: BinaryNode = {
      tag: "devices",
      attrs: {},
      content: [{ tag: "device-list", attrs: {}, content: [{ tag: "device", attrs: { id: "0" } }, ...own] }],
    };
    return { tag: "user", attrs: { jid }, content: [devices, ...(party ? [{ tag: "lid", attrs: { val: party.lidJid } }] : [])] };
  }
  #groupNode(jid: string): BinaryNode {
    const group = this.#host.groups.get(jid);
    if (!group) return { tag: "groups", attrs: {}, content: [] };
    const attrs = {
      id: jid.split("@")[0] ?? "",
      subject: group.subject,
      s_t: "1",
      creation: "1",
      creator: `${group.members[0]}@${SERVER}`,
      addressing_mode: "pn",
    };
    return { tag: "group", attrs, content: group.members.map((pn) => ({ tag: "participant", attrs: { jid: `${pn}@${SERVER}` } })) };
  }
}
