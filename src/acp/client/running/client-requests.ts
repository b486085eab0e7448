import type {
  ClientApp,
  CreateTerminalRequest,
  CreateTerminalResponse,
  ReadTextFileRequest,
  ReadTextFileResponse,
  ReleaseTerminalRequest,
  RequestPermissionResponse,
  WriteTextFileRequest,
} from "@agentclientprotocol/sdk/unstable";
import { methods, RequestError } from "@agentclientprotocol/sdk/unstable";
import { codeOf } from "../../../core/errors.ts";
import { endOfText, thrownText } from "../../../core/text.ts";
import type { ClientFiles } from "../files.ts";
import type { Terminals } from "../terminals.ts";
import type { PermissionDesk } from "./permissions.ts";

/** Not -32000, which says that somebody has to log in. */
const refusedCode = -32602;
const mostTexts = 32;
const longestText = 200_000;

/** What an agent asks of us. Between turns nobody watches over it, and nothing new is granted. */
export class ClientRequests {
  readonly #files: ClientFiles;
  readonly #terminals: Terminals;
  /** Of terminals that are released, as far as they are still wanted. */
  readonly #lastTexts = new Map<string, string>();
  /** Of the turn that is under way; `null`: none is. */
  desk: PermissionDesk | null = null;

  constructor(files: ClientFiles, terminals: Terminals) {
    this.#files = files;
    this.#terminals = terminals;
  }

  register(app: ClientApp): ClientApp {
    const { fs, session, terminal } = methods.client;
    const terminals = this.#terminals;
    return app
      .onRequest(session.requestPermission, async ({ params }): Promise<RequestPermissionResponse> => {
        return { outcome: (await this.desk?.forCall(params)) ?? { outcome: "cancelled" } };
      })
      .onRequest(fs.readTextFile, ({ params }) => this.#read(params))
      .onRequest(fs.writeTextFile, ({ params }) => this.#write(params))
      .onRequest(terminal.create, ({ params }) => this.#create(params))
      .onRequest(terminal.output, ({ params }) => told(() => terminals.output(params)))
      .onRequest(terminal.waitForExit, ({ params }) => told(() => terminals.waitForExit(params)))
      .onRequest(terminal.kill, ({ params }) => told(() => terminals.kill(params)))
      .onRequest(terminal.release, ({ params }) => told(() => this.#release(params)));
  }

  /** What a terminal has printed so far; `null`: there is none of this id. */
  terminalText(terminalId: string): string | null {
    const kept = this.#lastTexts.get(terminalId);
    if (kept !== undefined) return kept;
    try {
      return this.#terminals.output({ terminalId }).output;
    } catch {
      return null; // there is none of this id
    }
  }

  close(): Promise<void> {
    return this.#terminals.close();
  }

  /** Of a turn that was stopped: what they have printed can still be read. */
  async endTerminals(): Promise<void> {
    await this.#terminals.started();
    await Promise.allSettled(this.#terminals.ids.map((terminalId) => this.#release({ terminalId })));
  }

  async #read(params: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    this.#inTurn();
    return told(() => this.#files.readTextFile(params), params.path);
  }

  /** Inside its folder an agent writes as it likes: it asks for permission by itself where it wants to be sure. */
  async #write(params: WriteTextFileRequest): Promise<void> {
    if (this.#inTurn().policy === "deny") refuse("Files are not written here: permissions are denied");
    await told(() => this.#files.writeTextFile(params));
  }

  async #create(params: CreateTerminalRequest): Promise<CreateTerminalResponse> {
    const desk = this.#inTurn();
    const granted = await desk.forTerminal(params);
    const verdict = desk.isOver ? "cancelled" : granted;
    if (verdict === "granted") return told(() => this.#terminals.create(params));
    return refuse(
      `The command was not allowed: ${verdict === "refused" ? "permission was denied" : "the turn was stopped"}`,
    );
  }

  /** A call often tells of its result only after it has let its terminal go. */
  async #release({ terminalId }: Pick<ReleaseTerminalRequest, "terminalId">): Promise<void> {
    const text = this.terminalText(terminalId);
    const released = this.#terminals.release({ terminalId });
    if (text !== null) this.#lastTexts.set(terminalId, endOfText(text, longestText));
    const [oldest] = this.#lastTexts.keys();
    if (this.#lastTexts.size > mostTexts && oldest !== undefined) this.#lastTexts.delete(oldest);
    await released;
  }

  #inTurn(): PermissionDesk {
    return this.desk ?? refuse("No turn is under way");
  }
}

function refuse(sentence: string): never {
  throw new RequestError(refusedCode, sentence);
}

/** What is refused goes to the agent as it is: a sentence. Only of a file that is not there it has to know more. */
async function told<T>(act: () => T | Promise<T>, path = ""): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (path !== "" && codeOf(error) === "ENOENT") throw RequestError.resourceNotFound(path);
    return refuse(thrownText(error));
  }
}
