import { Foldable } from "../ui/foldable.tsx";
import { oneLine, plainText } from "../ui/plain-text.ts";
import styles from "./change-list.module.css";
import type { Context } from "./xray-page.tsx";

interface ChangeListProps {
  readonly changes: Context["changes"];
  readonly onShow: (messageIndex: number) => void;
}

/** Every change between the log and the request, with the text before and after it. */
export function ChangeList({ changes, onShow }: ChangeListProps) {
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
        {changes.map(({ step, kind, note, messageIndex, before, after }, index) => (
          <li key={index}>
            <Foldable title={oneLine(note, 200)}>
              <p className={styles.step}>
                {step} · {kind}
                {messageIndex !== undefined && (
                  <button type="button" onClick={() => onShow(messageIndex)}>
                    Show the message
                  </button>
                )}
              </p>
              {before !== undefined && <pre data-side="before">{plainText(before)}</pre>}
              {after !== undefined && <pre data-side="after">{plainText(after)}</pre>}
            </Foldable>
          </li>
        ))}
      </ol>
    </section>
  );
}
