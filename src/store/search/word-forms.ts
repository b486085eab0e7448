/** English words that add no meaning to a question, and forms that the stemmer does not reduce. */

/**
 * These words are indexed, so that phrases can contain them, but they do not count in a query that has other words. The
 * single letters remain from words such as "don't", "she's" and "we'll".
 */
export const stopWords: ReadonlySet<string> = new Set(
  `a an the and or but nor if so as of at by for from in into on onto off out over under up down to with without about
   after before during since until between through against among than then that this these those there here where when
   what which who whom whose why how i me my mine myself you your yours yourself he him his himself she her hers
   herself it its itself we us our ours ourselves they them their theirs themselves one ones
   am is are was were be been being do does did done doing have has had having can could will would shall should may
   might must not no yes any some all both each few more most other such own same too very just also only even ever
   still yet again once now s t d m ll re ve don didn doesn isn wasn weren wouldn couldn shouldn hasn haven hadn aren
   ain let lets get gets got said say says tell tells told please know knows much many kind sort mention happen exactly actually
   什么 时候 哪里 哪儿 怎么 怎样 为什 多少 哪个 哪些 我们 你们 他们 她们 这个 那个 是不 有没 是否 如何 可以 的时 么时`
    .split(/\s+/)
    .filter((word) => word !== ""),
);

/** A base form and its irregular forms. */
const families = `
arise arose arisen|awake awoke awoken|bear bore born borne|beat beaten|become became|begin began begun|bend bent
bind bound|bite bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt
buy bought|catch caught|choose chose chosen|cling clung|come came|creep crept|deal dealt|dig dug|draw drew drawn
dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought
find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven
freeze froze frozen|give gave given|go went gone|grow grew grown|hang hung|hear heard
hide hid hidden|hold held|keep kept|kneel knelt|lay laid|lead led|lean leant|leap leapt|learn learnt|leave left|lend lent
light lit|lose lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran
see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spend spent
spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|strike struck
swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|think thought
throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won
withdraw withdrew withdrawn|write wrote written|undergo underwent undergone|overcome overcame
child children kid kids|man men|woman women|person people|foot feet|tooth teeth|mouse mice|goose geese|wife wives
knife knives|half halves|shelf shelves|wolf wolves|loaf loaves|thief thieves|index indices
matrix matrices|vertex vertices|analysis analyses|crisis crises|hypothesis hypotheses|criterion criteria
phenomenon phenomena|diagnosis diagnoses|datum data|medium media
mother mom mum mommy mummy|father dad daddy|grandmother grandma granny|grandfather grandpa
photo photograph photography|bicycle bike|refrigerator fridge|television tv|application app|doctor dr
repository repo|configuration config|database db|directory dir|authentication auth|password passwd
colour color|favourite favorite|neighbour neighbor|centre center|theatre theater`;

/** Maps an irregular form to its base form. */
export const baseForms: ReadonlyMap<string, string> = new Map(
  families
    .trim()
    .split(/[|\n]/)
    .flatMap((family) => {
      const [base = "", ...forms] = family.split(" ");
      return forms.map((form) => [form, base] as const);
    }),
);
