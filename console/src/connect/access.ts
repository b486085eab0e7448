import type { SkeinClient } from "skein/client";
import { CallError, connect } from "skein/client";
import { Feed } from "./feed.ts";
import type { Identity, LinkedToken, SignedOut } from "./sign-in.ts";
import { exchangeCode, gatewayUrl, isSameIdentity, takeLinkCode } from "./sign-in.ts";
import { SingleFlight } from "./single-flight.ts";
import { forgetToken, forgetUser, readToken, storeTabToken, storeToken } from "./token-storage.ts";

export interface Gateway {
  readonly client: SkeinClient;
  readonly feed: Feed;
}

export type Access =
  | { readonly phase: "connecting" }
  | {
      readonly phase: "signed-out";
      readonly why: SignedOut;
      /** `true` if a link was opened but its code has not been used yet. */
      readonly keepsLink: boolean;
      readonly retry: () => void;
    }
  | {
      /** The link is for a different user than the one who is signed in. */
      readonly phase: "asking";
      readonly current: Identity;
      readonly offered: Identity;
      readonly answer: (takesOffer: boolean) => void;
    }
  | ({ readonly phase: "ready" } & Gateway);

/** Signs in this tab with its token or a link. Retries if the gateway cannot be reached. */
class AccessStore {
  readonly #listeners = new Set<() => void>();
  readonly #attempts = new SingleFlight(() => this.#attempt());
  #state: Access = { phase: "connecting" };
  #gateway: Gateway | null = null;
  // Until they are used, a link's code and the token it was exchanged for exist only here.
  #code: string | null = takeLinkCode();
  #offer: LinkedToken | null = null;
  #leavingToken: string | null = null;

  constructor() {
    // Opening a link in a tab that already shows the console changes only the fragment.
    addEventListener("hashchange", () => {
      const code = takeLinkCode();
      if (code === null) return;
      this.#code = code;
      void this.#attempts.request();
    });
    // Timers and sockets stop while a page is in the background.
    const check = () => {
      if (document.hidden) return;
      this.#gateway?.client.checkConnection();
      if (this.#state.phase === "signed-out" && this.#state.why === "unreachable") this.#state.retry();
    };
    document.addEventListener("visibilitychange", check);
    for (const name of ["pageshow", "online"]) addEventListener(name, check);
    void this.#attempts.request();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly state = (): Access => this.#state;

  /** Revokes the token at the user's request. The gateway then closes the connection. */
  async leave({ client }: Pick<Gateway, "client">): Promise<void> {
    this.#leavingToken = readToken();
    await client.call("tokens.revokeOwn", {});
  }

  async #attempt(): Promise<void> {
    try {
      const why = await this.#signIn();
      if (this.#gateway === null) this.#signOut(why);
      else this.#set({ phase: "ready", ...this.#gateway });
    } catch (error) {
      this.#signOut("unreachable");
      // Schedules another attempt.
      throw error;
    }
  }

  /**
   * Connects with the stored token, or with the token obtained for a link. If no gateway is connected afterward, the
   * result is the reason. Rejects if the gateway did not respond.
   */
  async #signIn(): Promise<SignedOut> {
    let why: SignedOut = "no-token";
    if (this.#code !== null) {
      this.#offer = await exchangeCode(this.#code);
      this.#code = null;
      if (this.#offer === null) why = "used";
    }
    const stored = readToken();
    if (this.#gateway === null && stored !== null) {
      this.#gateway = await this.#connect(stored);
      if (this.#gateway === null) why = "invalid";
    }
    const offer = this.#offer;
    if (offer === null) return why;
    const current = this.#gateway?.client.hello;
    const isTaken =
      current === undefined || isSameIdentity(current, offer) || (await this.#ask(current, offer));
    this.#set({ phase: "connecting" });
    if (isTaken) {
      if (current !== undefined && !isSameIdentity(current, offer)) forgetUser();
      storeToken(offer.token);
      this.#close();
      this.#gateway = await this.#connect(offer.token);
    } else await revoke(offer.token);
    this.#offer = null;
    return "ended";
  }

  #ask(current: Identity, offered: Identity): Promise<boolean> {
    return new Promise((answer) => this.#set({ phase: "asking", current, offered, answer }));
  }

  /** Returns `null` if the token has expired or been revoked. */
  async #connect(token: string): Promise<Gateway | null> {
    try {
      const client = await connect(gatewayUrl, { token, client: { name: "skein-console" } });
      storeTabToken(token);
      const gateway = { client, feed: new Feed() };
      client.onState((state, error) => {
        if (state !== "closed" || error === null || this.#gateway !== gateway) return;
        this.#gateway = null;
        const isEnded = error.code === "unauthorized";
        if (isEnded) forgetToken(token);
        // If the page is asking a question, the user must answer it first.
        const why = token === this.#leavingToken ? "left" : "ended";
        if (this.#state.phase !== "asking") this.#signOut(isEnded ? why : "unreachable");
        if (!isEnded) this.#attempts.requestSoon(1000);
      });
      gateway.feed.open(client);
      return gateway;
    } catch (error) {
      if (!(error instanceof CallError) || error.code !== "unauthorized") throw error;
      forgetToken(token);
      return null;
    }
  }

  #close(): void {
    this.#gateway?.feed.close();
    void this.#gateway?.client.close();
    this.#gateway = null;
  }

  #signOut(why: SignedOut): void {
    const keepsLink = this.#code !== null || this.#offer !== null;
    this.#set({ phase: "signed-out", why, keepsLink, retry: () => void this.#attempts.request() });
  }

  #set(state: Access): void {
    this.#state = state;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Revokes a token that was not used. If the gateway does not respond, the token eventually expires. */
async function revoke(token: string): Promise<void> {
  try {
    const client = await connect(gatewayUrl, { token, client: { name: "skein-console" } });
    await client.call("tokens.revokeOwn", {});
    await client.close();
  } catch {
    // The owner can revoke it on the access page.
  }
}

/** Created once per page load, before React renders, because the code must be removed from the URL immediately. */
export const accessStore = new AccessStore();
