import type { SkeinEvent } from "../../core/events.ts";
import { isRefusal } from "../../tools/session-tool.ts";
import { resultOf } from "./call-tool.ts";
import type { McpAsker, McpBackend } from "./mcp-context.ts";
import { urisOf, urisOfRow } from "./mcp-server.ts";

export interface NoticeListener {
  /** Called when a session has new messages, with every URI that could refer to it. */
  updated(uris: readonly string[]): void;
  /** Called when a session was added to the list or removed from it. */
  listChanged(): void;
}

const longestPage = 200;

interface Session {
  readonly sessionKey: string;
  readonly sessionId: string;
}

/**
 * Notifies one client about changes to sessions that it is currently allowed to read or list. Changes that occur during
 * a check are coalesced.
 */
export class Notices {
  readonly #app: McpBackend;
  readonly #asker: McpAsker;
  readonly #listener: NoticeListener;
  readonly #isWanted: (uri: string) => boolean;
  readonly #closing = new AbortController();
  readonly #reading = new Map<string, { again: boolean }>();
  /** Sessions added or removed since the last check. */
  readonly #moved = new Set<string>();
  /** `true` if events were lost since the last check. */
  #isBehind = false;
  readonly #leave: () => void;
  /** The IDs of the newest listed sessions, or `null` before the first check. */
  #listed: ReadonlySet<string> | null = null;
  #listing: { again: boolean } | null = null;

  constructor(
    app: McpBackend,
    asker: McpAsker,
    listener: NoticeListener,
    isWanted: (uri: string) => boolean = () => true,
  ) {
    this.#app = app;
    this.#asker = asker;
    this.#listener = listener;
    this.#isWanted = isWanted;
    const onLoss = () => {
      this.#isBehind = true;
      this.#relist();
    };
    this.#leave = app.subscribe(asker.userId, (event) => this.#hear(event), onLoss);
    this.#relist();
  }

  close(): void {
    this.#leave();
    this.#closing.abort();
  }

  #hear(event: SkeinEvent): void {
    if (event.type === "entry.appended" || event.type === "session.reset") this.#changed(event);
    switch (event.type) {
      case "session.created":
      case "session.restored":
      case "session.deleted":
      case "session.archived":
        this.#moved.add(event.sessionId);
        break;
      case "session.reset":
        this.#moved.add(event.freshSessionId);
        break;
      // Sent, for example, when a session is unarchived.
      case "session.updated":
        break;
      default:
        return;
    }
    this.#relist();
  }

  /**
   * Closes this object if its token is no longer valid, and returns whether it is closed. Called only when there is
   * work, because events are frequent.
   */
  async #isOver(): Promise<boolean> {
    const { tokenId } = this.#asker;
    const { signal } = this.#closing;
    if (!signal.aborted && (await this.#app.findEndedTokens([tokenId])).has(tokenId)) this.close();
    return signal.aborted;
  }

  #changed(session: Session): void {
    const uris = urisOf(this.#app, this.#asker, session).filter(this.#isWanted);
    if (uris.length === 0) return;
    const { sessionKey } = session;
    const busy = this.#reading.get(sessionKey);
    if (busy !== undefined) {
      busy.again = true;
      return;
    }
    const work = { again: true };
    this.#reading.set(sessionKey, work);
    const check = async () => {
      if (await this.#mayRead(sessionKey)) this.#listener.updated(uris);
    };
    void this.#untilDone(work, check).finally(() => this.#reading.delete(sessionKey));
  }

  #relist(): void {
    if (this.#listing !== null) {
      this.#listing.again = true;
      return;
    }
    this.#listing = { again: true };
    void this.#untilDone(this.#listing, () => this.#compare()).finally(() => {
      this.#listing = null;
    });
  }

  /** Runs `act` again if something changed while it was running. */
  async #untilDone(work: { again: boolean }, act: () => Promise<void>): Promise<void> {
    try {
      while (work.again && !(await this.#isOver())) {
        work.again = false;
        await act();
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#app.report(error);
    }
  }

  async #mayRead(sessionKey: string): Promise<boolean> {
    const result = await this.#ask("sessions_history", { sessionKey, limit: 1 });
    return !isRefusal(result) && !(await this.#isOver());
  }

  async #compare(): Promise<void> {
    const moved = [...this.#moved];
    const isBehind = this.#isBehind;
    this.#moved.clear();
    this.#isBehind = false;
    const result = await this.#ask("sessions_list", { limit: longestPage });
    if (isRefusal(result) || (await this.#isOver())) return;
    const { sessions, nextCursor } = result as {
      sessions: readonly { readonly key: string; readonly sessionId: string }[];
      nextCursor?: string;
    };
    const before = this.#listed;
    const now = new Set(sessions.map(({ sessionId }) => sessionId));
    this.#listed = now;
    const isOther = before !== null && !isEqual(before, now);
    // Only the first page is compared, so a change on a later page cannot be ruled out.
    const isBeyond = (isBehind || moved.length > 0) && nextCursor !== undefined;
    if (isOther || isBeyond || moved.some((id) => now.has(id))) this.#listener.listChanged();
    if (!isBehind) return;
    // The sessions that changed while events were lost are among the newest ones.
    for (const session of sessions) {
      const uris = urisOfRow(this.#app, this.#asker, session).filter(this.#isWanted);
      if (uris.length > 0) this.#listener.updated(uris);
    }
  }

  #ask(name: string, args: unknown) {
    return resultOf(this.#app, this.#asker, { name, args, signal: this.#closing.signal });
  }
}

function isEqual(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((id) => other.has(id));
}
