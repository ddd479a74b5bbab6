/**
 * A fake embedding server for tests: OpenAI's `POST .../embeddings` over real HTTP on loopback. Its vectors are
 * those of `meaning.ts`. A test can enqueue other answers, take it down, and hold answers back.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerFor } from "./meaning.ts";

export interface EmbeddingRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly model: string;
  readonly input: readonly string[];
  readonly dimensions: number | undefined;
}
export interface EmbeddingAnswer {
  readonly status?: number;
  readonly body: string;
  /** The connection breaks off after the body, which was said to be longer. */
  readonly breaksOff?: boolean;
}
export interface FakeEmbeddings {
  /** `http://127.0.0.1:PORT/v1` */
  readonly url: string;
  readonly requests: readonly EmbeddingRequest[];
  /** The status of every answer that is not enqueued; 200 by default. */
  status: number;
  /** Requests wait while it is true. */
  held: boolean;
  enqueue(...answers: EmbeddingAnswer[]): void;
  release(): void;
  close(): Promise<void>;
}
const SIZES: Readonly<Record<string, number>> = { "text-embedding-3-small": 1536, "text-embedding-3-large": 3072 };

export async function startFakeEmbeddings(): Promise<FakeEmbeddings> {
  const requests: EmbeddingRequest[] = [];
  const answers: EmbeddingAnswer[] = [];
  let waiting: (() => void)[] = [];
  const fake = { status: 200, held: false };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    const { model, input, dimensions } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as EmbeddingRequest;
    requests.push({ path: request.url ?? "", authorization: request.headers.authorization, model, input, dimensions });
    if (fake.held) await new Promise<void>((resolve) => waiting.push(resolve));
    const size = dimensions ?? SIZES[model] ?? 64;
    const {
      status = 200,
      body,
      breaksOff = false,
    }: EmbeddingAnswer = answers.shift() ?? {
      status: fake.status,
      body: fake.status === 200 ? JSON.stringify(answerFor(input, size)) : JSON.stringify({ error: { message: "words of the server" } }),
    };
    if (breaksOff) {
      response.writeHead(status, { "content-type": "application/json", "content-length": body.length + 100 });
      response.write(body, () => response.destroy());
    } else response.writeHead(status, { "content-type": "application/json" }).end(body);
  };
  const server = createServer(
    (request, response) => void serve(request, response).catch((error: unknown) => response.writeHead(400).end(String(error))),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(fake, {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    enqueue: (...more: EmbeddingAnswer[]) => void answers.push(...more),
    release: () => {
      fake.held = false;
      for (const go of waiting) go();
      waiting = [];
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}
