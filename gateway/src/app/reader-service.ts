/**
 * Readers in isolates of their own, for the embedded gateway. Their modules are files that are loaded when a document or image comes. An
 * isolate serves one file, has no network and no bindings, and its memory is free afterwards. Reached by the binding `READERS` only, never over HTTP.
 */
import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../platform/env.ts";
import type { Held, Reader, ReaderName, Readers, ReaderTask } from "../ports/readers.ts";

/** The properties of the binding: the compatibility settings that the gateway itself runs with. */
export interface ReaderProps {
  readonly compatibilityDate?: string;
  readonly compatibilityFlags?: readonly string[];
}
const MODULES: Readonly<Record<ReaderName, readonly [main: string, ...more: string[]]>> = {
  pdf: ["pdf.mjs"],
  documents: ["documents.mjs"],
  images: ["images.mjs", "photon_rs_bg.wasm"],
};
/** What runs around a reader. */
const WORKER = `import { WorkerEntrypoint } from "cloudflare:workers"; import { read } from "./reader.mjs";
export default class extends WorkerEntrypoint {
  ready() {}
  read(bytes, task) { return read(bytes, task); }
}`;
interface ReaderWorker extends Reader, Rpc.WorkerEntrypointBranded {
  /** Answers when its modules are loaded. */
  ready(): Promise<void>;
}

/** Its isolate ends when its caller disposes of it, because it belongs to the call that opened it. */
class LoadedReader extends RpcTarget implements Reader {
  readonly #worker: ReaderWorker;
  constructor(worker: ReaderWorker) {
    super();
    this.#worker = worker;
  }
  read(bytes: Uint8Array, task: ReaderTask) {
    return this.#worker.read(bytes, task);
  }
}

export class ReaderService extends WorkerEntrypoint<Env, ReaderProps> implements Readers {
  async open(name: ReaderName): Promise<Reader & Held> {
    const { LOADER } = this.env;
    if (LOADER === undefined) throw new Error("this deployment imports its readers");
    const [reader, ...more] = MODULES[name];
    const others = await Promise.all(more.map(async (file) => [file, await this.#module(file)] as const));
    const { compatibilityDate = "2026-11-01", compatibilityFlags = [] } = this.ctx.props ?? {};
    const stub = LOADER.load({
      compatibilityDate,
      compatibilityFlags: [...compatibilityFlags],
      mainModule: "main.js",
      modules: { "main.js": WORKER, "reader.mjs": await this.#module(reader), ...Object.fromEntries(others) },
      globalOutbound: null,
    });
    const entrypoint = stub.getEntrypoint<ReaderWorker>();
    await entrypoint.ready();
    return new LoadedReader(entrypoint);
  }
  async #module(file: string): Promise<WorkerLoaderModule> {
    const response = await this.env.MODULES?.fetch(`http://modules/${file}`);
    if (response?.ok !== true) throw new Error(`the module ${file} cannot be read`);
    return file.endsWith(".wasm") ? { wasm: await response.arrayBuffer() } : { js: await response.text() };
  }
}
