import buttons from "../ui/button.module.css";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import { oneLine } from "../ui/plain-text.ts";
import styles from "./change-list.module.css";
import type { Context } from "./xray-page.tsx";

type Change = Context["changes"][number];

interface ChangeListProps {
  readonly changes: readonly Change[];
  readonly onShow: (messageIndex: number) => void;
}

/** Every change between the log and the request, with the text before and after it. Equal changes share a row. */
export function ChangeList({ changes, onShow }: ChangeListProps) {
  const groups = Map.groupBy(changes, ({ step, kind, note }) => JSON.stringify([step, kind, note]));
  return (
    <section aria-label="Changes">
      <h2 className={styles.head}>
        {changes.length === 0
          ? "No changes"
          : changes.length === 1
            ? "1 change"
            : `${changes.length} changes`}
      </h2>
      {changes.length === 0 && <p className={styles.none}>The model sees the log as it is.</p>}
      <ol className={styles.list}>
        {[...groups].map(([sign, members]) => (
          <li key={sign}>
            <Foldable title={titleOf(members)}>
              {members.map((change, index) => (
                <ChangeText key={index} change={change} onShow={onShow} />
              ))}
            </Foldable>
          </li>
        ))}
      </ol>
    </section>
  );
}

function titleOf(members: readonly Change[]): string {
  const note = oneLine(members[0]?.note ?? "", 200);
  return members.length === 1 ? note : `${members.length} × ${note}`;
}

function ChangeText({
  change: { step, kind, messageIndex, before, after },
  onShow,
}: {
  readonly change: Change;
  readonly onShow: ChangeListProps["onShow"];
}) {
  return (
    <>
      <p className={styles.step}>
        {step} · {kind}
        {messageIndex !== undefined && (
          <button
            type="button"
            className={buttons.button}
            data-look="quiet"
            onClick={() => onShow(messageIndex)}
          >
            Show the message
          </button>
        )}
      </p>
      {before !== undefined && (
        <div data-side="before">
          <CodeBlock text={before} />
        </div>
      )}
      {after !== undefined && (
        <div data-side="after">
          <CodeBlock text={after} />
        </div>
      )}
    </>
  );
}
