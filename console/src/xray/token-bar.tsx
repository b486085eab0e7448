import { shortCount } from "../ui/time.ts";
import styles from "./token-bar.module.css";
import type { Context } from "./xray-page.tsx";

type Part = Exclude<keyof Context["tokens"], "total" | "window">;

const parts: Readonly<Record<Part, string>> = {
  system: "System",
  tools: "Tools",
  summary: "Summary",
  user: "User",
  assistant: "Answers",
  thinking: "Thinking",
  toolCalls: "Tool calls",
  toolResults: "Tool results",
  images: "Images",
};

/** A request's tokens by part. The parts add up to the total. The rest of the bar is the unused part of the window. */
export function TokenBar({
  tokens,
  counted,
}: {
  readonly tokens: Context["tokens"];
  /** The model's total, or `null` if it is unknown. Providers do not count parts, so the parts are estimates. */
  readonly counted: number | null;
}) {
  const shares = (Object.keys(parts) as Part[]).flatMap((part) => {
    const count = tokens[part] ?? 0;
    return count === 0 ? [] : [{ part, name: parts[part], count }];
  });
  const { total, window = total } = tokens;
  const isOver = total > window;
  const isCounted = counted !== null && counted > 0;
  return (
    <section className={styles.section} aria-label="Tokens">
      <p className={styles.total}>
        <b>{total.toLocaleString("en")}</b> tokens
        {tokens.window === undefined ? "" : ` of ${shortCount(window)}, ${percent(total / window)}`}
        {isOver && <span className={styles.over}> over the context window</span>}
        {" · estimated"}
        {isCounted && `; the model counted ${counted.toLocaleString("en")}`}
      </p>
      <p className={styles.note}>
        {isCounted
          ? "The transcript shows the model’s count as “in context”. Models do not count parts, so these are estimates."
          : "No model has counted this request yet. The transcript shows what the model counted for the last answer."}
      </p>
      <div className={styles.bar} aria-hidden>
        {shares.map(({ part, count }) => (
          <span key={part} data-part={part} style={{ flexGrow: count }} />
        ))}
      </div>
      <ul className={styles.legend}>
        {shares.map(({ part, name, count }) => (
          <li key={part}>
            <span className={styles.key} data-part={part} aria-hidden />
            {name} <b>{count.toLocaleString("en")}</b>
          </li>
        ))}
      </ul>
      {tokens.window !== undefined && (
        <div className={styles.window} aria-hidden>
          <span
            style={{ width: `${Math.min(100, (total / window) * 100)}%` }}
            data-over={isOver || undefined}
          />
        </div>
      )}
    </section>
  );
}

function percent(share: number): string {
  return share < 0.01 ? "less than 1%" : `${Math.round(share * 100)}%`;
}
