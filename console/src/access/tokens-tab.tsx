import { useState } from "react";
import type { Result } from "skein/client";
import { useSearchParams } from "wouter";
import { useCall, useChange, useGateway, useMay } from "../connect/gateway.tsx";
import buttons from "../ui/button.module.css";
import { Choice } from "../ui/choice.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { ago, fullTime, shortTime } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import { CreateToken } from "./create-token.tsx";
import { PhoneLink } from "./phone-link.tsx";
import { RevokeButton, SignOutButton } from "./revoke-button.tsx";
import styles from "./tokens-tab.module.css";

type Token = Result<"tokens.list">["tokens"][number];

/**
 * `/access?tab=tokens`: this browser's token first, then all of the gateway's tokens if this one is allowed to see
 * them.
 */
export function TokensTab() {
  const { client } = useGateway();
  const mayList = useMay("tokens.list");
  const [shown, setShown] = useState("valid");
  const [isCreating, setIsCreating] = useState(false);
  const { data, error, refetch } = useCall("tokens.list", {}, { isEnabled: mayList });
  const own = data?.tokens.find(({ tokenId }) => tokenId === client.hello.tokenId);
  const tokens = (data?.tokens ?? []).filter((token) => shown === "all" || isValid(token));
  return (
    <div className={styles.tab}>
      <ThisBrowser />
      {mayList && (
        <section aria-label="All tokens">
          <header className={styles.head}>
            <h2>All tokens</h2>
            <Choice label="Show" value={shown} options={{ valid: "Valid", all: "All" }} onChange={setShown} />
            {/* How long a new token can be valid depends on this browser's token, which is in the list. */}
            <button
              type="button"
              className={buttons.button}
              disabled={data === undefined && error === null}
              onClick={() => setIsCreating(true)}
            >
              Create a token…
            </button>
          </header>
          {error !== null ? (
            <ErrorNotice error={error} />
          ) : data === undefined ? (
            <Notice text="Loading the tokens…" isBusy />
          ) : (
            <TokenTable tokens={tokens} onChanged={() => void refetch()} />
          )}
          <CreateToken
            isOpen={isCreating}
            latest={own?.expiresAt ?? null}
            onClose={() => setIsCreating(false)}
            onCreated={() => void refetch()}
          />
        </section>
      )}
    </div>
  );
}

/** This page's token: what it can do, how to sign in on a phone, and how to revoke it. */
function ThisBrowser() {
  const { client } = useGateway();
  const { scopes, userId, allUsers, tokenId } = client.hello;
  const [query] = useSearchParams();
  const mayLink = useMay("links.create");
  return (
    <section className={styles.own} aria-label="This browser">
      <div>
        <h2>This browser</h2>
        <p className={styles.facts}>
          {scopes.join(", ")} · {whose({ allUsers, userId })}
          {tokenId !== undefined && <code> {tokenId}</code>}
        </p>
      </div>
      <div className={styles.buttons}>
        {mayLink && <PhoneLink />}
        <SignOutButton key={query.get("do")} isAsking={query.get("do") === "sign-out"} />
      </div>
    </section>
  );
}

function TokenTable({
  tokens,
  onChanged,
}: {
  readonly tokens: readonly Token[];
  readonly onChanged: () => void;
}) {
  const { client } = useGateway();
  const now = useNow(true, "minute");
  const change = useChange();
  const mayRevoke = useMay("tokens.revoke");
  if (tokens.length === 0) return <p className={styles.empty}>There are no valid tokens.</p>;
  return (
    <div data-scroll-cue className={styles.scroller}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th>Token</th>
            <th>May</th>
            <th>For</th>
            <th>Created</th>
            <th>Last used</th>
            <th>Expires</th>
            <th>
              <span className="visually-hidden">Revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => {
            const isOwn = token.tokenId === client.hello.tokenId;
            return (
              <tr key={token.tokenId} data-ended={!isValid(token, now) || undefined}>
                <th scope="row">
                  {token.label ?? "unnamed"} {isOwn && <span className={styles.mark}>this browser</span>}
                  <code>{token.tokenId}</code>
                </th>
                <td>{token.scopes.join(", ")}</td>
                <td>{whose(token)}</td>
                <td data-name="Created" title={fullTime(token.createdAt)}>
                  {shortTime(token.createdAt, now)}
                </td>
                <td
                  data-name="Used"
                  title={token.lastUsedAt === undefined ? undefined : fullTime(token.lastUsedAt)}
                >
                  {token.lastUsedAt === undefined ? "never" : ago(token.lastUsedAt, now)}
                </td>
                <td data-name="Expires">{endText(token, now)}</td>
                <td className={styles.act}>
                  {mayRevoke && isValid(token, now) && !isOwn && (
                    <RevokeButton
                      name="Revoke"
                      revoke={() => change("tokens.revoke", { tokenId: token.tokenId })}
                      onRevoked={onChanged}
                    />
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function isValid({ revokedAt, expiresAt }: Token, now = Date.now()): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt > now);
}

function endText(token: Token, now: number): string {
  if (token.revokedAt !== undefined)
    return token.isUnsaved === true ? "revoked, not saved yet" : `revoked ${ago(token.revokedAt, now)}`;
  if (token.expiresAt === undefined) return "never";
  return token.expiresAt <= now ? "expired" : shortTime(token.expiresAt, now);
}

function whose({
  allUsers,
  userId,
}: {
  readonly allUsers: boolean;
  readonly userId?: string | undefined;
}): string {
  if (allUsers) return "all users";
  return userId === undefined ? "the default user" : userId;
}
