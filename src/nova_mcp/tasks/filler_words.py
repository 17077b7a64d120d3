"""Words that tell nothing about a task, and words that tell little, in English and German; data only.

All of them stand as matching sees them: folded, so that `ß` is `ss`.
"""

from typing import Final

_ENGLISH: Final = """
    a an the this that these those it its they them their there here i me my mine we us our ours you your yours he
    him his she her hers who whom whose which what when where why how and or but nor so yet if then else than as of
    at by for from in into on onto off out over under up down to toward with within without about above across after
    again against along among around before behind below beneath beside between beyond during except inside near
    outside since through throughout till until upon via per is am are was were be been being do does did done doing
    have has had having can could may might must shall should will would let lets get gets got getting not no nor
    none any some each every all both either neither few many much more most other others another such own same only
    just also too very still even ever never now once always already please don doesn didn isn aren wasn weren won
    ve ll re using use used uses need needs needed want wants wanted make makes made making
"""
_GERMAN: Final = """
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines dieser diese
    dieses diesen diesem jener jene jenes jenen jenem welcher welche welches welchen welchem solche solcher solches
    ich mich mir mein meine meinen meinem meiner meines du dich dir dein deine deinen deinem deiner er ihn ihm sein
    seine seinen seinem seiner seines sie ihr ihre ihren ihrem ihrer ihres es wir uns unser unsere unseren unserem
    unserer euch euer eure man sich wer wen wem wessen was wann wo woher wohin warum wieso wie und oder aber denn
    doch sondern sowie als ob wenn weil dass damit obwohl bevor nachdem falls sobald solange an am ans auf aufs aus
    bei beim bis durch fuer für gegen hinter hinterm in im ins mit nach neben ohne seit ueber über übers um unter
    vom von vor vorm waehrend während wegen zu zum zur zwischen ab je pro ist bin bist sind seid war waren wird
    werden wurde wurden worden sei habe hat haben hatte hatten kann koennen können könnte muss muessen müssen müsste
    soll sollen sollte sollten will wollen wollte darf duerfen dürfen dürfte mag mögen möchte lass lassen lasse
    nicht nichts nie niemals ja nein alle allen aller alles jede jeden jedem jeder jedes beide beiden einige einigen
    mehrere viele vielen wenige andere anderen anderer anderes auch nur noch schon sehr so dann dort da hier jetzt
    immer wieder mal bitte etwa etwas sonst bereits eben brauche brauchen braucht benutze benutzen nutze nutzen
    mache machen macht tue tun
"""
# What nearly every task says: it is work, on pages, and somebody looks at something.
_LIGHT_ENGLISH: Final = """
    tell tells told give gives given answer answers check checks checked checking find finds found finding open
    opens opened opening review reviews reviewed reviewing look looks looked looking see seen show shows shown view
    views viewed viewing go goes going visit visits visited visiting read reads reading click clicks clicked
    clicking search searches searched searching scan scans scanned verify verifies verified verifying inspect
    inspects inspected inspecting examine examines examined examining test tests tested testing run runs running
    start starts started starting do task tasks job jobs work works working page pages site sites website websites
    web webpage webpages url urls link links browser tab tabs screen screens list lists listed listing collect
    collects collected collecting gather gathers gathering note notes noted noting report reports reported reporting
    help helps try tries thing things item items new current whole complete entire full everything whether correct
    correctly right properly issue issues problem problems
"""
_LIGHT_GERMAN: Final = """
    gib gebe geben sag sage sagen nenne nennen prüfe prüfen prüft geprüft prüfung überprüfe überprüfen überprüft
    überprüfung kontrolliere kontrollieren kontrolle pruefe pruefen ueberpruefe ueberpruefen finde finden findet
    gefunden suche suchen sucht gesucht öffne öffnen öffnet geöffnet oeffne oeffnen schaue schauen schau ansehen
    anschauen angucken ansieht sieh sehen zeige zeigen zeigt angezeigt lies lese lesen liest klicke klicken besuche
    besuchen gehe gehen geht durchgehen durchsehen durchsuche durchsuchen untersuche untersuchen teste testen test
    tests starte starten aufgabe aufgaben arbeit arbeiten seite seiten webseite webseiten website websites web
    internetseite internetseiten unterseite unterseiten url urls link links browser tab tabs bildschirm liste listen
    auflisten sammle sammeln notiere notieren notiz melde melden bericht berichte berichten hilf helfen ding dinge
    sache sachen neu neue neuen neuer neues aktuell aktuelle aktuellen ganz ganze ganzen gesamt gesamte gesamten
    komplett komplette kompletten vollständig vollständige richtig richtige korrekt korrekte stimmt stimmen problem
    probleme
"""

STOPWORDS: Final = frozenset(f"{_ENGLISH} {_GERMAN}".casefold().split())
LIGHT_WORDS: Final = frozenset(f"{_LIGHT_ENGLISH} {_LIGHT_GERMAN}".casefold().split())
