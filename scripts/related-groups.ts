/**
 * Everyday English words with related meanings. A question often uses another word than its answer does. Each line is a
 * group. A word can be in several groups.
 */
export const relatedGroups = `
buy purchase order acquire shop spend|sell sale auction|cost price charge fee pay expensive cheap budget amount rent
money cash budget fund saving|salary wage pay income raise earn|job work career position role employ occupation profession
boss manager supervisor lead|colleague coworker teammate team|company firm employer business office workplace
hire recruit offer join|quit resign leave|fire layoff dismiss|interview apply application|promote promotion raise
house home apartment flat place condo|live reside move stay settle|move relocate|landlord landlady owner tenant lease rent
room bedroom kitchen bathroom|repair fix maintenance broken|break broken damage crack crash fail|install setup mount
trip travel journey vacation holiday visit tour getaway|fly flight plane airport airline|train rail railway station
car vehicle drive auto|bus coach|bicycle cycle ride|hotel hostel accommodation airbnb stay|luggage baggage suitcase bag
beach sea ocean coast|mountain hill hike trail climb|lake river|city town village|country nation abroad overseas
doctor physician gp clinic|hospital clinic surgery operation|nurse doctor|dentist tooth dental|medicine medication drug pill prescription
sick ill illness disease unwell|pain ache hurt sore injury|injury injure hurt sprain break fracture|allergy allergic react
health healthy fitness wellbeing|exercise workout gym training fitness|run jog marathon race|swim pool|yoga meditation
diet eat food meal nutrition|cook recipe bake dish meal food|breakfast lunch dinner supper meal|restaurant cafe diner bistro eat
drink coffee tea beverage|cake dessert pastry sweet|vegetarian vegan meat|bread bake sourdough
mother parent|father parent|parent mother father family|child baby kid son daughter|brother sibling|sister sibling|sibling brother sister
husband spouse partner wife|wife spouse partner husband|partner boyfriend girlfriend spouse|marry wedding marriage engage husband wife
divorce separate split|birth born baby pregnant|family relative|grandmother grandparent|grandfather grandparent|aunt relative|uncle relative|cousin relative
friend buddy pal friendship|neighbour neighborhood|guest visitor visit|meet encounter meeting|invite invitation party
dog puppy pet animal|cat kitten pet animal|pet animal dog cat|adopt adoption rescue shelter|vet veterinarian
school class course lesson education|teacher professor instructor tutor coach|student pupil|study learn exam course degree|university college campus degree
exam test quiz|graduate degree diploma|book novel read author|read book|write author essay|library book
movie film cinema watch|show series tv episode|music song band album concert|concert gig show festival|instrument guitar piano violin
sing song choir|dance ballet|paint art draw picture|art artist museum gallery exhibition|photo picture camera image
craft pottery ceramic clay|knit sew crochet|garden plant flower grow|plant flower tree|hobby interest pastime activity
game play|sport team play|football soccer|win victory champion prize award|lose defeat loss|prize award medal trophy
birthday anniversary celebrate party|gift present|celebrate celebration party|holiday christmas thanksgiving easter
weather rain snow storm sunny|hot warm heat|cold freeze chilly|summer winter spring autumn season
phone call mobile cell ring|email mail message letter|message text note|talk speak chat discuss conversation tell|discuss talk debate
explain describe clarify|ask question request inquire|answer reply respond response|suggest recommend propose advice advise idea|advice tip recommend
promise commit agree|agree accept approve consent|refuse reject decline deny|decide decision choose choice pick settle|choose pick select prefer opt
plan intend arrange schedule|schedule appointment calendar book arrange|book reserve reservation booking|cancel call postpone|delay postpone late
start begin launch open commence|end finish complete stop conclude|stop quit end|continue keep resume|change switch alter modify replace|replace swap substitute change
problem issue trouble difficulty bug|solve fix resolve solution|reason cause why because|cause reason trigger lead|result outcome effect consequence
happy glad excited joy pleased|sad upset unhappy|angry mad annoyed furious|afraid scared fear worry anxious nervous|worry concern anxious stress
stress pressure burnout overwhelm|tired exhausted fatigue sleep|love like enjoy favourite adore|like enjoy prefer|hate dislike|hope wish want dream
goal aim target objective|dream goal ambition|try attempt|help assist support aid volunteer|support help group|volunteer charity donate community
charity donate fundraiser|group club community team|church religion faith pray|protest march rally campaign|vote election
big large huge|small little tiny|long length duration|fast quick speed|slow late|old age ancient|new recent latest|important key crucial
favourite prefer best|nice lovely pleasant|beautiful pretty lovely|difficult hard tough challenge|easy simple
number amount count total|many count number|time hour o'clock|date day|week weekly|month monthly|year annual|early morning|evening night tonight
kind type sort|name call title|colour paint shade|size dimension measure|weight kilo pound heavy|height tall|address street location
location place venue spot|road street route|near close nearby|keep store save|lose miss misplace|find discover locate|search look hunt seek
bring take carry|give hand donate|send ship deliver post mail|deliver delivery ship package parcel|receive get arrive|return refund back
clothes dress shirt wear outfit|shoe boot sneaker|wear dress|insurance policy claim coverage|contract agreement lease sign|sign signature agree register
register enroll sign join|member membership join subscribe|subscription plan subscribe|account login user|password credential secret key
error exception failure fail bug crash|bug defect issue error|crash fail down outage|outage downtime incident|slow latency performance|fast performance
deploy release ship rollout publish|release version publish|version release upgrade|upgrade update migrate bump|update upgrade change|rollback revert undo
delete remove drop erase|add insert include create|create make build new|build compile make|test spec check verify|check verify inspect test
server host machine|database table sql postgres|table column row schema|query select search|config setting option flag parameter|setting option preference
log trace record|monitor alert dashboard|request call api endpoint|response reply answer|timeout deadline expire|limit maximum cap threshold quota
cache memory store|memory ram leak|disk storage space|network connection proxy|port listen bind|branch merge commit git|commit change patch
file document|folder directory path|function method|variable value|library package dependency module|script job cron task|task ticket issue todo
user customer client|customer client buyer|refund reimburse return money|complaint complain unhappy|invoice bill receipt charge payment|discount coupon reduce
screen display monitor|laptop computer pc notebook|printer print|battery charge power|power electricity energy|water leak pipe plumb|noise loud sound
lawyer attorney legal court|police officer|accident crash collision|steal theft rob|fire smoke burn|key lock door|door gate entrance|window glass
wake sleep alarm|shower bath wash|wash clean laundry|clean tidy wash|dirty mess clean|throw discard trash|trash garbage rubbish bin
surprise unexpected shock|secret private hide|true real correct right|wrong incorrect mistake error|mistake error fault|safe secure safety|danger risk dangerous
free available spare|busy occupied|empty full|share together split|alone single lonely|together both couple|meet gather join
remember remind recall forget|forget miss remember|notice spot see realize|see watch look view|look appear seem|hear listen sound|feel emotion mood
think believe opinion|opinion view thought|know aware understand|understand realize grasp|teach train show|train practice prepare coach|practice rehearse train
prepare ready plan|ready prepared done|finish done complete|fail unable wrong|succeed success manage achieve|achieve accomplish reach|improve better progress
grow increase rise raise|increase raise grow more|reduce decrease cut lower drop|limit restrict|measure weigh test|compare difference versus
origin native background country|country nationality|language speak fluent|identity self|relationship status single marry date|date relationship romantic
kid child toddler|teenager teen adolescent|adult grown|elderly old senior|religion faith belief|politics government|government official council
army military soldier veteran|war fight battle|peace calm relax|relax rest unwind calm|rest break relax|fun enjoy entertain|funny joke laugh|cry tear
nature outdoors forest wildlife|camp tent outdoors|forest wood tree|park playground|sunset sunrise sky|star astronomy telescope|fish aquarium|bird
stage theatre play perform|perform performance concert show|audience crowd|race compete competition tournament|compete contest competition|coach trainer
ball basketball tennis|ski snowboard|surf wave|board game puzzle chess|video game console|toy doll|story tale fiction|poem poetry|fantasy fiction
blog post article|article paper publish|publish release|paper document report|report summary|presentation talk slide|speech talk|conference event summit
event occasion|meeting call appointment|deadline due|project task|design draft sketch|idea concept|research study investigate|investigate look examine
data information|information detail fact|detail specific|list item|step stage phase|rule policy|permission allow access|access login enter|allow permit let
block prevent stop|hide mask|show display present|open start|close shut|lock secure|connect link join|separate split apart|part piece component|whole entire
left right side|front back|top bottom|inside outside|north south east west|first initial|last final|next following|previous former before
thank grateful appreciate|sorry apologize apology|proud pride|brave courage|strong strength|weak|smart clever intelligent|crazy mad|strange weird odd
shop store supermarket market grocery|grocery food shop|market stall|bakery bread|bar pub|clothing fashion|jewelry ring necklace|ring engagement wedding
tattoo|hair haircut salon|makeup|glasses eye vision|eye vision sight|ear hearing|heart cardiac|blood|back spine|knee leg ankle|leg knee foot|arm hand wrist shoulder
therapy therapist counselor counseling psychologist|mental psychology health|depress sad|addiction quit|smoke cigarette|alcohol drink wine beer|wine drink|beer drink
bank loan mortgage account|loan debt mortgage borrow|borrow lend loan|invest stock share|tax|insurance cover|deposit downpayment bond|bill invoice utility
wall paint|floor tile carpet|furniture sofa couch chair table desk|sofa couch|bed mattress sleep|light lamp bulb|roof ceiling|heat radiator boiler
`;
