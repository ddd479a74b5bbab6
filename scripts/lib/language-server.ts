/** TypeScript's language server, for questions about a whole program, such as who refers to a name. One process for all questions. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Positions count from 0. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly character: number;
}
export interface LanguageServer {
  /** Makes a file and its project known. */
  open(file: string): void;
  /** Where else the name at a place is used. */
  references(place: Place): Promise<readonly Place[]>;
  stop(): void;
}
interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly items?: readonly unknown[] };
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}
interface Location {
  readonly uri: string;
  readonly range: { readonly start: { readonly line: number; readonly character: number } };
}

export async function startLanguageServer(root: string, program: string): Promise<LanguageServer> {
  const child = spawn(program, ["--lsp", "--stdio"], { cwd: root, stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map<number, { readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void }>();
  let asked = 0;
  const send = (message: object): void => {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    child.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  };
  const ask = async (method: string, params: object): Promise<unknown> => {
    const id = ++asked;
    const answer = await new Promise<Answer>((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      send({ id, method, params });
    });
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  };
  const take = (message: Answer): void => {
    if (message.id === undefined) return;
    // The server's own questions are about editors: every setting is absent.
    if (message.method !== undefined) send({ id: message.id, result: message.params?.items?.map(() => null) ?? null });
    else waiting.get(message.id)?.resolve(message);
  };
  let bytes = Buffer.alloc(0);
  child.stdout.on("data", (piece: Buffer) => {
    bytes = Buffer.concat([bytes, piece]);
    for (;;) {
      const head = bytes.indexOf("\r\n\r\n");
      const length = Number(/Content-Length: (\d+)/.exec(bytes.toString("utf8", 0, Math.max(0, head)))?.[1]);
      if (head < 0 || bytes.length < head + 4 + length) return;
      take(JSON.parse(bytes.toString("utf8", head + 4, head + 4 + length)) as Answer);
      bytes = bytes.subarray(head + 4 + length);
    }
  });
  const failAll = (reason: string): void => {
    for (const { reject } of waiting.values()) reject(new Error(`the language server ${reason}`));
  };
  child.on("error", (error) => failAll(`did not start: ${error.message}`));
  child.on("exit", (code) => failAll(`ended with ${code ?? "a signal"}`));
  const uriOf = (file: string): string => pathToFileURL(file).href;
  const folder = { uri: uriOf(root), name: "root" };
  await ask("initialize", { processId: process.pid, rootUri: folder.uri, capabilities: {}, workspaceFolders: [folder] });
  send({ method: "initialized", params: {} });
  return {
    open: (file) =>
      send({
        method: "textDocument/didOpen",
        params: { textDocument: { uri: uriOf(file), languageId: "typescript", version: 1, text: readFileSync(file, "utf8") } },
      }),
    async references({ file, line, character }) {
      const position = { line, character };
      const context = { includeDeclaration: false };
      const found = (await ask("textDocument/references", { textDocument: { uri: uriOf(file) }, position, context })) as Location[] | null;
      return (found ?? []).map(({ uri, range }) => ({ file: fileURLToPath(uri), ...range.start }));
    },
    stop: () => void child.kill(),
  };
}
