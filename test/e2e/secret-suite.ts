/**
 * Helpers of secret-sinks.test.ts (suite Q): the encodings in which a secret may appear, readers of files and of process arguments, and a
 * proxy that records what the gateway sends.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/** For each of the three alignments, the part of the base64 text that does not depend on the bytes before and after these. */
function base64Cores(bytes: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
}
/** The secret by the name of its encoding: plain, JSON, percent, hexadecimal, reversed, base64. */
export function spellings(secret: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString("hex");
  const all: [string, string][] = [
    ["plain", secret],
    ["JSON", JSON.stringify(secret).slice(1, -1)],
    ["percent", encodeURIComponent(secret)],
    ["hex", hex],
    ["HEX", hex.toUpperCase()],
    ["reversed", [...secret].toReversed().join("")],
    ...base64Cores(bytes).flatMap((core, at): [string, string][] => [
      [`base64 at ${at}`, core],
      [`base64url at ${at}`, core.replaceAll("+", "-").replaceAll("/", "_")],
    ]),
  ];
  return new Map(all);
}
/** The encoding in which a text has the secret, if it has it. Texts that are split into lines or JSON chunks are also searched joined. */
export function shown(text: string, secret: string): string | undefined {
  const joined = text.replace(/"\}?\s*,?\s*\{?"(?:chunk|text)":"|\\n|\n/g, "");
  for (const [how, spelled] of spellings(secret)) if (text.includes(spelled) || joined.includes(spelled)) return how;
  return undefined;
}

/** Transcripts are stored compressed. */
const unpacked = (bytes: Buffer): Buffer => (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes);
/** All files below a folder, as text in which bytes keep their places. */
export function filesOf(folder: string, skip: (name: string) => boolean = () => false): string {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => !skip(name))
    .map((name) => join(folder, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true)
    .map((file) => `\n== ${file}\n${unpacked(readFileSync(file)).toString("latin1")}`)
    .join("");
}
/** Arguments of all processes that have this text in their arguments or in their environment. */
export function argumentsOf(mark: string): string {
  const lines: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ");
      if (`${args}\n${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(mark)) lines.push(args);
    } catch {
      // It has ended.
    }
  }
  return lines.join("\n");
}

/** A proxy that keeps what the gateway sends. Compression is not offered to it, so that frames can be read. */
export class Tap {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((near) => this.#join(near));
  #heard: Buffer[] = [];
  constructor(target: number) {
    this.#target = target;
  }
  async listen(): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return this;
  }
  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/ws`;
  }
  get text(): string {
    return Buffer.concat(this.#heard).toString("latin1");
  }
  #join(near: Socket): void {
    const far = connect(this.#target, "127.0.0.1");
    let isHead = true;
    const end = (): void => {
      for (const socket of [near, far]) {
        socket.destroy();
        this.#sockets.delete(socket);
      }
    };
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    near.on("data", (piece) => {
      far.write(isHead ? piece.toString("latin1").replace(/sec-websocket-extensions:[^\r\n]*\r\n/i, "") : piece, "latin1");
      isHead = false;
    });
    far.on("data", (piece: Buffer) => {
      this.#heard.push(piece);
      near.write(piece);
    });
  }
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}
