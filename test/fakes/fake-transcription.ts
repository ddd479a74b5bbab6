/**
 * A fake speech-to-text server for tests: OpenAI's `POST .../audio/transcriptions` over real HTTP on loopback, the real multipart wire.
 * Answers `heard N bytes` unless a test enqueues another text. Never waits.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface Heard {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly fields: Readonly<Record<string, string>>;
  readonly filename: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}
export interface SpeechAnswer {
  readonly status?: number;
  readonly body: string;
}
export interface FakeTranscription {
  /** `http://127.0.0.1:PORT/v1` */
  readonly url: string;
  readonly heard: readonly Heard[];
  enqueue(...answers: SpeechAnswer[]): void;
  close(): Promise<void>;
}

async function understood(request: IncomingMessage): Promise<Heard> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  const form = await new Response(Buffer.concat(chunks), {
    headers: { "content-type": request.headers["content-type"] ?? "" },
  }).formData();
  const file = form.get("file");
  if (!(file instanceof File)) throw new Error("no file in the form");
  const fields = [...form.entries()].flatMap(([name, value]) => (typeof value === "string" ? [[name, value] as const] : []));
  return {
    path: request.url ?? "",
    authorization: request.headers.authorization,
    fields: Object.fromEntries(fields),
    filename: file.name,
    contentType: file.type,
    bytes: new Uint8Array(await file.arrayBuffer()),
  };
}

export async function startFakeTranscription(): Promise<FakeTranscription> {
  const heard: Heard[] = [];
  const answers: SpeechAnswer[] = [];
  const server = createServer((request, response) => {
    understood(request).then(
      (one) => {
        heard.push(one);
        const { status = 200, body } = answers.shift() ?? { body: JSON.stringify({ text: `heard ${one.bytes.length} bytes` }) };
        response.writeHead(status, { "content-type": "application/json" }).end(body);
      },
      (error: unknown) => response.writeHead(400).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    heard,
    enqueue: (...more) => void answers.push(...more),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
