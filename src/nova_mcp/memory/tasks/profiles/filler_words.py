"""Words that tell nothing about a task, and words that tell little, in English and German; data only.

All of them stand as matching sees them: folded, so that `ß` is `ss`.
"""

from typing import Final

from nova_mcp.core import keywords

# Beside the filler words of any text.
_ENGLISH: Final = """
    mine ours yours hers whose yet else onto down toward within without above across again against along among
    around behind below beneath beside beyond during except inside near outside since throughout till upon via per
    might let lets get gets got getting none every both either neither few many much others another same still even
    ever never now always already don doesn didn isn aren wasn weren won ve ll re using use used uses need needs
    needed want wants wanted make makes made making
"""
_GERMAN: Final = """
    keinen keinem keiner keines jener jene jenes jenen jenem welcher welche welches welchen welchem solche solcher
    solches meinen meinem meiner meines deinen deinem deiner seinen seinem seiner seines ihren ihrem ihrer ihres
    unsere unseren unserem unserer eure wen wem wessen wann woher wohin warum wieso sondern sowie obwohl bevor
    nachdem falls sobald solange ans aufs fuer hinter hinterm neben seit ueber übers vorm waehrend während wegen ab
    je pro bist seid wurde wurden worden sei hatten koennen könnte muessen müsste sollte sollten wollen wollte darf
    duerfen dürfen dürfte mag mögen möchte lass lassen lasse nichts nie niemals beide beiden einige einigen mehrere
    viele vielen wenige anderen anderer anderes schon jetzt immer wieder mal etwa etwas sonst bereits eben brauche
    brauchen braucht benutze benutzen nutze nutzen mache machen macht tue tun
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

STOPWORDS: Final = keywords.STOPWORDS.union(f"{_ENGLISH} {_GERMAN}".casefold().split())
LIGHT_WORDS: Final = frozenset(f"{_LIGHT_ENGLISH} {_LIGHT_GERMAN}".casefold().split())
