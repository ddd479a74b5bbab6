/** HTTP of the fake: WhatsApp's file servers, and all other paths as actions of `control`. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { control, type Controlled } from "./control.ts";

/** What this needs of the server. */
export interface FileServerHost extends Controlled {
  readonly fileHost: string;
  note(kind: string, fields?: Readonly<Record<string, unknown>>): void;
}

export class FileServer {
  readonly files = new Map<string, Buffer>();
  readonly #host: FileServerHost;

  constructor(host: FileServerHost) {
    this.#host = host;
  }

  /** Keeps an encrypted file and gives its path. */
  keep(sealed: Buffer): string {
    const directPath = `/files/${randomBytes(8).toString("hex")}`;
    this.files.set(directPath, sealed);
    return directPath;
  }
  readonly answer = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      this.#answerHttp(request.method ?? "GET", new URL(request.url ?? "/", "http://fake").pathname, Buffer.concat(chunks)).then(
        ({ status, body }) => response.writeHead(status).end(body),
        (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.stack : String(error)),
      );
    });
  };
  async #answerHttp(method: string, path: string, body: Buffer): Promise<{ status: number; body: Buffer | string }> {
    if (path.startsWith("/files/")) {
      const file = this.files.get(path);
      this.#host.note("file-read", { path, found: file !== undefined });
      return file ? { status: 200, body: file } : { status: 404, body: "" };
    }
    if (path.startsWith("/mms/") && method === "POST") {
      const directPath = this.keep(body);
      this.#host.note("file-written", { path: directPath, size: body.length });
      return { status: 200, body: JSON.stringify({ url: `https://${this.#host.fileHost}${directPath}`, direct_path: directPath }) };
    }
    const { status, body: answer } = await control(this.#host, path, body.length === 0 ? {} : JSON.parse(body.toString()));
    return { status, body: JSON.stringify(answer) };
  }
}
